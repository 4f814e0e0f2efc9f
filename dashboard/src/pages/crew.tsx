import { get } from "../api";
import { useResource } from "../live/resource";
import { Empty, Failed, Loading } from "../ui/empty";
import { Ago } from "../ui/parts";
import type { TaskOut } from "../wire";

export default function Crew() {
  const tasks = useResource("tasks", (signal) => get<TaskOut[]>("tasks", {}, signal), () => true);
  if (!tasks.data) return <section class="page">{tasks.error ? <Failed error={tasks.error} again={tasks.again} /> : <Loading />}</section>;
  const states = [...new Set(tasks.data.map((task) => task.state))];
  return (
    <section class="page">
      <h1>Crew</h1>
      {states.length === 0 ? (
        <Empty title="No crew at work">
          <p>Tasks of a conductor's workers appear here while they run.</p>
        </Empty>
      ) : (
        <div class="board">
          {states.map((state) => (
            <section key={state} class="lane" aria-label={state}>
              <h2>{state}</h2>
              {tasks.data?.filter((task) => task.state === state).map((task) => (
                <article key={task.id} class="card">
                  <div class="inside">
                    <b>{task.id}</b>
                    <p class="quiet small">
                      {task.worker || "nobody"}
                      {task.heartbeatAt !== null ? <> · heard <Ago at={task.heartbeatAt} /></> : null}
                    </p>
                    {task.note ? <p class="muted small wrap">{task.note}</p> : null}
                  </div>
                </article>
              ))}
            </section>
          ))}
        </div>
      )}
    </section>
  );
}
