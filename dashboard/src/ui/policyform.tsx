// A policy's commonest settings as a form. What is left empty comes from the template, or from above.
import type { PolicyOut, Valid } from "../wire";

export type Settings = Record<string, unknown>;

interface Field {
  key: string; // ours, as in the TOML
  label: string;
  about: string;
  sort: "whole" | "number" | "flag" | readonly string[];
  inForce?: (policy: PolicyOut) => unknown; // what holds when nothing is set here
}

const GROUPS: { title: string; fields: Field[] }[] = [
  {
    title: "Ladder",
    fields: [
      { key: "ladder", label: "Ladder", about: "Which rungs there are to climb.", sort: ["task", "call", "pipeline", "model", "crew"], inForce: (policy) => policy.ladder },
      { key: "template", label: "Template", about: "A set of values to start from.", sort: [] },
    ],
  },
  {
    title: "Retries",
    fields: [
      { key: "retries", label: "Retries", about: "Tries on the retry rung.", sort: "whole", inForce: (policy) => policy.maxRetries },
      { key: "backoff.base", label: "First pause (s)", about: "Before the first repeat.", sort: "number", inForce: (policy) => policy.backoffBase },
      { key: "backoff.multiplier", label: "Grows by", about: "Each pause times this.", sort: "number", inForce: (policy) => policy.backoffMultiplier },
      { key: "backoff.cap", label: "Longest pause (s)", about: "No pause is longer.", sort: "number", inForce: (policy) => policy.maxBackoff },
    ],
  },
  {
    title: "Limits of one incident",
    fields: [
      { key: "attempts", label: "Attempts", about: "The first one counted.", sort: "whole" },
      { key: "seconds", label: "Seconds", about: "Waits counted.", sort: "number" },
      { key: "dollars", label: "Dollars", about: "As the attempts report them.", sort: "number" },
      { key: "attempt_seconds", label: "One attempt (s)", about: "It is ended after this long.", sort: "number" },
    ],
  },
  {
    title: "Other models",
    fields: [
      { key: "auto_escalate", label: "Escalate by itself", about: "A dearer model may take over unasked.", sort: "flag", inForce: (policy) => policy.autoEscalate },
      { key: "escalate_after", label: "After failures", about: "With fewer, a person is asked.", sort: "whole", inForce: (policy) => policy.escalateAfterRetries },
      { key: "confirm", label: "A person agrees", about: "Before another model or agent takes over.", sort: ["never", "more_expensive", "always"] },
      { key: "sticky", label: "Stays for", about: "How long a session keeps the new model.", sort: ["call", "session"] },
      { key: "unattended", label: "Nobody is there", about: "A question ends blocked, with a report.", sort: "flag" },
    ],
  },
];

export function PolicyForm({ policy, templates, wrong, change, disabled }: { policy: PolicyOut; templates: readonly string[]; wrong: Valid | null; change: (settings: Settings) => void; disabled: boolean }) {
  return (
    <div class="policy-form">
      {GROUPS.map((group) => (
        <fieldset key={group.title} disabled={disabled}>
          <legend>{group.title}</legend>
          <div class="policy-fields">
            {group.fields.map((field) => (
              <One key={field.key} field={field.key === "template" ? { ...field, sort: templates } : field} policy={policy} wrong={isAbout(wrong, field) ? (wrong?.message ?? "") : null} set={(value) => change(put(policy.settings, field.key, value))} />
            ))}
          </div>
        </fieldset>
      ))}
      <p class="quiet small">Models, kinds that may be retried, prompts and ladders of your own are set in the TOML.</p>
    </div>
  );
}

const WIRE: Record<string, string> = { maxRetries: "retries", backoffBase: "backoff.base", backoffMultiplier: "backoff.multiplier", maxBackoff: "backoff.cap", autoEscalate: "auto_escalate", escalateAfterRetries: "escalate_after" };

function isAbout(wrong: Valid | null, field: Field): boolean {
  const name = (wrong?.field ?? "").replace(/^policy\./, "").replace(/^budget\./, "");
  return wrong !== null && (WIRE[name] ?? name) === field.key;
}

function One({ field, policy, wrong, set }: { field: Field; policy: PolicyOut; wrong: string | null; set: (value: unknown) => void }) {
  const value = pick(policy.settings, field.key);
  const below = field.inForce ? field.inForce(policy) : undefined;
  const id = `policy-${field.key}`;
  const common = { id, "aria-describedby": `${id}-about`, "aria-invalid": wrong !== null };
  return (
    <div class="field">
      <label for={id}>{field.label}</label>
      {field.sort === "whole" || field.sort === "number" ? (
        <input {...common} class="input" type="number" min="0" step={field.sort === "whole" ? "1" : "any"} value={typeof value === "number" ? value : ""} placeholder={below === undefined ? "" : String(below)}
          onInput={(event) => set(event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value))} />
      ) : (
        <select {...common} class="select" value={value === undefined ? "" : String(value)} onChange={(event) => set(chosen(field, event.currentTarget.value))}>
          <option value="">{below === undefined ? "not set" : `not set (${said(below)})`}</option>
          {(field.sort === "flag" ? ["true", "false"] : field.sort).map((one) => (
            <option key={one} value={one} selected={String(value) === one}>{field.sort === "flag" ? said(one === "true") : one}</option>
          ))}
        </select>
      )}
      <small id={`${id}-about`}>{wrong !== null ? <span class="wrong">{wrong}</span> : field.about}</small>
    </div>
  );
}

const said = (value: unknown): string => (value === true ? "yes" : value === false ? "no" : String(value));

function chosen(field: Field, text: string): unknown {
  if (text === "") return undefined;
  return field.sort === "flag" ? text === "true" : text;
}

function pick(settings: Settings, key: string): unknown {
  const [outer = "", inner] = key.split(".");
  const value = settings[outer];
  if (inner === undefined) return value ?? (settings["budget"] as Settings | undefined)?.[outer];
  return typeof value === "object" && value !== null ? (value as Settings)[inner] : undefined;
}

/** The settings with one value put in, or taken out when it is undefined. */
function put(settings: Settings, key: string, value: unknown): Settings {
  const [outer = "", inner] = key.split(".");
  const made = { ...settings };
  if (inner === undefined) {
    if (value === undefined) delete made[outer];
    else made[outer] = value;
    const budget = made["budget"] as Settings | undefined;
    if (budget && outer in budget) {
      const { [outer]: _, ...rest } = budget;
      made["budget"] = rest;
    }
    return made;
  }
  const table = { ...((made[outer] as Settings | undefined) ?? {}) };
  if (value === undefined) delete table[inner];
  else table[inner] = value;
  if (Object.keys(table).length > 0) made[outer] = table;
  else delete made[outer];
  return made;
}
