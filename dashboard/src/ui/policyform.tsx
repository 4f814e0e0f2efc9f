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
      { key: "ladder", label: "Ladder", about: "The recovery steps to use.", sort: ["task", "call", "pipeline", "model", "crew"], inForce: (policy) => policy.ladder },
      { key: "template", label: "Template", about: "Base values for all settings.", sort: [] },
    ],
  },
  {
    title: "Retries",
    fields: [
      { key: "retries", label: "Retries", about: "Tries on the retry rung.", sort: "whole", inForce: (policy) => policy.maxRetries },
      { key: "backoff.base", label: "Initial wait (s)", about: "Before the first retry.", sort: "number", inForce: (policy) => policy.backoffBase },
      { key: "backoff.multiplier", label: "Multiplier", about: "Growth of each further wait.", sort: "number", inForce: (policy) => policy.backoffMultiplier },
      { key: "backoff.cap", label: "Maximum wait (s)", about: "Upper limit of each wait.", sort: "number", inForce: (policy) => policy.maxBackoff },
    ],
  },
  {
    title: "Limits per incident",
    fields: [
      { key: "attempts", label: "Attempts", about: "Including the first attempt.", sort: "whole" },
      { key: "seconds", label: "Seconds", about: "Including waits.", sort: "number" },
      { key: "dollars", label: "Dollars", about: "As reported by the attempts.", sort: "number" },
      { key: "attempt_seconds", label: "Attempt timeout (s)", about: "An attempt is stopped after this time.", sort: "number" },
    ],
  },
  {
    title: "Escalation",
    fields: [
      { key: "auto_escalate", label: "Automatic", about: "Use a more expensive model without confirmation.", sort: "flag", inForce: (policy) => policy.autoEscalate },
      { key: "escalate_after", label: "Minimum failures", about: "With fewer, a person must confirm.", sort: "whole", inForce: (policy) => policy.escalateAfterRetries },
      { key: "confirm", label: "Confirmation", about: "When a person must confirm a hand-over.", sort: ["never", "dearer", "always"] },
      { key: "sticky", label: "Duration", about: "How long a session keeps the new model.", sort: ["call", "session"] },
      { key: "unattended", label: "Unattended", about: "Questions end the incident as blocked.", sort: "flag" },
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
      <p class="quiet small">Set models, retryable kinds, prompts and custom ladders in the TOML.</p>
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
