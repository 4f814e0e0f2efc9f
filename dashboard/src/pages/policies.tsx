import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call, get, deniedReason, me } from "../api";
import { duration } from "../format";
import type { Message } from "../live/stream";
import { useResource } from "../live/use_resource";
import { updateParams, hrefTo } from "../route";
import { Dialog } from "../ui/dialog";
import { Diff } from "../ui/diff";
import { LoadError, Loading } from "../ui/empty";
import { Ago, Select } from "../ui/parts";
import { Backtest } from "../ui/backtest";
import { PolicyForm, type Settings } from "../ui/policy_form";
import { showToast } from "../ui/toast";
import type { EffectivePolicy, PolicyIn, PolicyOut, PolicyTemplate, PolicyValidation, ProjectPolicy, SettingsFileOut } from "../wire";

const DEBOUNCE_MS = 350;

const isAction = ({ name }: Message) => name === "act";

export default function Policies({ params }: { params: URLSearchParams }) {
  const project = params.get("project") ?? "";
  const path = project ? `projects/${encodeURIComponent(project)}/retry-policy` : "retry-policy";
  const stored = useResource(path, async (signal) => call<PolicyOut>("GET", path, { signal }), isAction);
  const overrides = useResource("project policies", (signal) => get<ProjectPolicy[]>("projects/retry-policies", {}, signal), isAction);
  const templates = useResource("templates", (signal) => get<PolicyTemplate[]>("retry-policy/templates", {}, signal));
  return (
    <section class="page">
      <header>
        <div>
          <h1>Policies</h1>
          <p class="muted small">How failures are recovered, by default and per project.</p>
        </div>
        <PolicySelect project={project} overrides={overrides.data ?? []} />
      </header>
      {stored.data ? (
        <Editor key={path} path={path} project={project} stored={stored.data.data} etag={stored.data.etag ?? '"0"'} templates={templates.data ?? []}
          reload={() => { stored.reload(); overrides.reload(); }} />
      ) : stored.error ? (
        <LoadError error={stored.error} retry={stored.reload} />
      ) : (
        <Loading rows={8} />
      )}
      {project ? <EffectiveValues project={project} /> : <SettingsFiles />}
    </section>
  );
}

function PolicySelect({ project, overrides }: { project: string; overrides: ProjectPolicy[] }) {
  const overridesByProject = new Map(overrides.map((one) => [one.project, one]));
  const names = [...new Set([...overridesByProject.keys(), ...(me.value?.projects ?? []), ...(project ? [project] : [])])].filter(Boolean).sort();
  const chosen = overridesByProject.get(project);
  return (
    <div class="actions">
      {chosen ? <span class="quiet small">version {chosen.version}, by {chosen.who}, <Ago at={chosen.at} /></span> : null}
      <Select label="Policy" value={project} pick={(name) => updateParams({ project: name })}
        choices={[{ value: "", label: "Default" }, ...names.map((name) => ({ value: name, label: overridesByProject.has(name) ? `${name} (overrides)` : name }))]} />
    </div>
  );
}

interface EditorProps {
  path: string;
  project: string;
  stored: PolicyOut;
  etag: string;
  templates: PolicyTemplate[];
  reload: () => void;
}

/** A stored version of the policy: what a draft starts from and is compared with. */
interface Version {
  policy: PolicyOut;
  etag: string;
}

/** Form and TOML are two views of one draft; the service converts between them. A newer stored version keeps the draft. */
function Editor({ path, project, stored, etag, templates, reload }: EditorProps) {
  const [base, setBase] = useState<Version>({ policy: stored, etag });
  const [toml, setToml] = useState(stored.toml);
  const [policy, setPolicy] = useState(stored);
  const [problem, setProblem] = useState<PolicyValidation | null>(null);
  const [saving, setSaving] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latestCheck = useRef(0);
  const isChecking = useRef(false);
  const denied = deniedReason("admin");
  const isModified = toml.trim() !== base.policy.toml.trim();
  const isOutdated = stored.version > base.policy.version;

  const check = async (draft: PolicyIn) => {
    const current = ++latestCheck.current;
    try {
      const query = project ? { project } : {};
      const { data } = await call<PolicyValidation>("POST", "retry-policy/validate", { query, body: draft });
      if (current !== latestCheck.current) return; // a newer draft is being checked
      isChecking.current = false;
      setProblem(data.valid ? null : data);
      if (data.valid && data.policy) {
        setPolicy(data.policy);
        if (draft.toml === undefined) setToml(data.policy.toml);
      }
    } catch (error) {
      if (current !== latestCheck.current) return;
      isChecking.current = false;
      const apiError = error instanceof ApiError ? error : new ApiError(0, String(error));
      setProblem({ valid: false, field: apiError.field, message: apiError.message });
    }
  };
  const scheduleCheck = (draft: PolicyIn) => {
    isChecking.current = true;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void check(draft), DEBOUNCE_MS);
  };
  const editToml = (text: string) => {
    setToml(text);
    scheduleCheck({ toml: text });
  };
  const editSettings = (settings: Settings) => {
    setPolicy((old) => ({ ...old, settings }));
    scheduleCheck({ settings });
  };
  const startFrom = (version: Version) => {
    latestCheck.current++;
    isChecking.current = false;
    clearTimeout(timer.current);
    setBase(version);
    setToml(version.policy.toml);
    setPolicy(version.policy);
    setProblem(null);
  };
  const newest = { policy: stored, etag };
  useEffect(() => {
    if (isOutdated && !isModified && !isChecking.current) startFrom(newest);
  });
  useEffect(() => () => clearTimeout(timer.current), []);

  return (
    <>
      <TemplateRow templates={templates} selected={policy.settings["template"]} pick={editSettings} disabled={denied !== null} />
      <div class="policy">
        <section class="card">
          <header><h2>Settings</h2></header>
          <div class="card-body">
            <PolicyForm policy={policy} templates={templates.map((one) => one.id)} problem={problem} change={editSettings} disabled={denied !== null} />
          </div>
        </section>
        <div class="sidebar">
          <section class="card">
            <header>
              <h2>TOML</h2>
              {isModified ? <span class="tag">modified</span> : null}
            </header>
            <div class="card-body">
              <textarea class="textarea toml" aria-label="Policy as TOML" spellcheck={false} rows={Math.max(9, Math.min(24, toml.split("\n").length + 1))} value={toml} readOnly={denied !== null}
                placeholder={project ? "# no overrides: the default policy applies" : "# no settings: defaults of the ladder and template apply"} onInput={(event) => editToml(event.currentTarget.value)} />
              {problem ? <p class="error-text" role="alert">{problem.field ? <b>{problem.field}: </b> : null}{problem.message}</p> : null}
            </div>
          </section>
          <Schedule policy={policy} />
          <Backtest toml={toml} project={project} valid={problem === null} />
        </div>
      </div>
      {isModified || denied ? <div class="save-bar">
        {denied ? <span class="disabled-reason">{denied}</span> : problem ? <span class="error-text">The policy is invalid.</span> : isOutdated ? <span class="error-text" role="status">Someone else saved this policy. Your changes are kept.</span> : <span class="muted small">Unsaved changes.</span>}
        {isOutdated ? <button class="button" onClick={() => setBase(newest)}>Compare with it</button> : null}
        <button class="button" disabled={!isModified} onClick={() => startFrom(isOutdated ? newest : base)}>Discard changes</button>
        <button class="button primary" disabled={!isModified || problem !== null || denied !== null} onClick={() => setSaving(true)}>Review and save</button>
      </div> : null}
      {saving ? <SaveDialog path={path} before={base.policy.toml} after={toml} etag={base.etag} close={() => setSaving(false)} outdated={reload}
        saved={(version) => { setSaving(false); startFrom(version); reload(); }} /> : null}
    </>
  );
}

function TemplateRow({ templates, selected, pick, disabled }: { templates: PolicyTemplate[]; selected: unknown; pick: (settings: Settings) => void; disabled: boolean }) {
  if (templates.length === 0) return null;
  return (
    <div class="templates" role="group" aria-label="Start from a template">
      {templates.map((one) => (
        <button key={one.id} class="card template" aria-pressed={selected === one.id} disabled={disabled} onClick={() => pick(one.policy.settings)}>
          <b>{one.id}</b>
          <span class="muted small">{one.about}</span>
        </button>
      ))}
    </div>
  );
}

/** The waits between retries and the upper limits of the policy. */
function Schedule({ policy }: { policy: PolicyOut }) {
  const max = Math.max(...policy.waits, 0.001);
  const limits = [
    policy.worstAttempts === null ? null : `${policy.worstAttempts} attempts`,
    policy.worstSeconds === null ? null : duration(policy.worstSeconds),
    policy.worstDollars ? `$${policy.worstDollars.toFixed(2)}` : "no price known",
  ].filter(Boolean);
  return (
    <section class="card">
      <header><h2>Retry schedule</h2></header>
      <div class="card-body">
        {policy.waits.length > 0 ? (
          <>
            <p class="muted small">Maximum wait before each retry</p>
            <ol class="wait-chart">
              {policy.waits.map((wait, n) => (
                <li key={n}>
                  <span class="wait-bar" aria-hidden="true"><span style={{ height: `${Math.max(4, (wait / max) * 100)}%` }} /></span>
                  <span class="quiet small">{duration(wait)}</span>
                </li>
              ))}
            </ol>
          </>
        ) : (
          <p class="muted small">This policy never retries a request unchanged.</p>
        )}
        <p class="small">Maximum per incident: {limits.length > 0 ? <b>{limits.join(", ")}</b> : "no limit"}.</p>
      </div>
    </section>
  );
}

interface SaveProps {
  path: string;
  before: string;
  after: string;
  etag: string;
  close: () => void;
  outdated: () => void;
  saved: (version: Version) => void;
}

function SaveDialog({ path, before, after, etag, close, outdated, saved }: SaveProps) {
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      const stored = await call<PolicyOut>("PUT", path, { body: { toml: after }, headers: { "If-Match": etag } });
      showToast("Saved. The policy applies from the next recovery.");
      saved({ policy: stored.data, etag: stored.etag ?? '"0"' });
    } catch (error) {
      const stale = error instanceof ApiError && (error.status === 412 || error.status === 409);
      if (stale) outdated();
      setError(stale ? "Someone else saved this policy in the meantime. Cancel, and compare your changes with it." : error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Save these changes?" close={close}>
      <Diff before={before.trim()} after={after.trim()} label="Policy changes" />
      <footer>
        {error ? <span class="error-text" role="alert">{error}</span> : null}
        <button class="button" onClick={close}>Cancel</button>
        <button class="button primary" disabled={busy} onClick={save}>Save</button>
      </footer>
    </Dialog>
  );
}

const ORIGIN_LABELS: Record<string, string> = { preset: "preset", file: "rung.toml", service: "default policy", "project file": "rung.toml (project)", project: "project override" };

function EffectiveValues({ project }: { project: string }) {
  const effective = useResource(`effective ${project}`, (signal) => get<EffectivePolicy>(`projects/${encodeURIComponent(project)}/retry-policy/effective`, {}, signal), isAction);
  if (!effective.data) return null;
  return (
    <section class="card">
      <header><h2>Effective policy for {project}</h2><a class="small" href={hrefTo(["sessions"], { project })}>View sessions</a></header>
      <div class="card-body scroll-x" tabIndex={0} role="region" aria-label="Effective values">
        <table class="table">
          <thead><tr><th>Key</th><th>Value</th><th>Source</th></tr></thead>
          <tbody>
            {effective.data.values.map((one) => (
              <tr key={one.key}>
                <td><code>{one.key}</code></td>
                <td class="wrap">{valueText(one.value)}</td>
                <td><span class={one.origin === "preset" ? "quiet" : ""}>{ORIGIN_LABELS[one.origin]}</span></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** The rung.toml files of directories. Trust is given on the machine itself, so this only shows it. */
function SettingsFiles() {
  const files = useResource("settings files", (signal) => get<SettingsFileOut[]>("settings-files", {}, signal));
  if (!files.data || files.data.length === 0) return null;
  return (
    <section class="card">
      <header><h2>Settings files of directories</h2></header>
      <div class="card-body scroll-x" tabIndex={0} role="region" aria-label="Settings files of directories">
        <p class="muted small">Until <code>rung trust FILE</code> is run on this machine, only the policy of a file is used.</p>
        <table class="table">
          <thead><tr><th>File</th><th>Decision</th><th>Used only if trusted</th></tr></thead>
          <tbody>
            {files.data.map((one) => (
              <tr key={one.path}>
                <td class="wrap"><code>{one.path}</code></td>
                <td>{one.decision}</td>
                <td class="wrap">{one.needsTrust.join(", ") || "nothing"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function valueText(value: unknown): string {
  if (value === null) return "none";
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(", ") || "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
