// Form for the most common policy settings. An empty field inherits from the template or the parent policy.
import type { PolicyOut, PolicyValidation } from "../wire";

export type Settings = Record<string, unknown>;

interface Field {
  key: string; // as in the TOML
  label: string;
  description: string;
  type: "whole" | "number" | "flag" | readonly string[];
  effective?: (policy: PolicyOut) => unknown; // the value that applies if the field is empty
}

const GROUPS: { title: string; fields: Field[] }[] = [
  {
    title: "Ladder",
    fields: [
      { key: "ladder", label: "Ladder", description: "The recovery steps to use.", type: ["task", "call", "pipeline", "model", "crew"], effective: (policy) => policy.ladder },
      { key: "template", label: "Template", description: "Base values for all settings.", type: [] },
    ],
  },
  {
    title: "Retries",
    fields: [
      { key: "retries", label: "Retries", description: "Tries on the retry rung.", type: "whole", effective: (policy) => policy.maxRetries },
      { key: "backoff.base", label: "Initial wait (s)", description: "Before the first retry.", type: "number", effective: (policy) => policy.backoffBase },
      { key: "backoff.multiplier", label: "Multiplier", description: "Growth of each further wait.", type: "number", effective: (policy) => policy.backoffMultiplier },
      { key: "backoff.cap", label: "Maximum wait (s)", description: "Upper limit of each wait.", type: "number", effective: (policy) => policy.maxBackoff },
    ],
  },
  {
    title: "Limits per incident",
    fields: [
      { key: "attempts", label: "Attempts", description: "Including the first attempt.", type: "whole" },
      { key: "seconds", label: "Seconds", description: "Including waits.", type: "number" },
      { key: "dollars", label: "Dollars", description: "As reported by the attempts.", type: "number" },
      { key: "attempt_seconds", label: "Attempt timeout (s)", description: "An attempt is stopped after this time.", type: "number" },
    ],
  },
  {
    title: "Escalation",
    fields: [
      { key: "auto_escalate", label: "Automatic", description: "Use another model without confirmation.", type: "flag", effective: (policy) => policy.autoEscalate },
      { key: "escalate_after", label: "Retries before escalation", description: "Then another model takes over; with fewer, a person must confirm.", type: "whole", effective: (policy) => policy.escalateAfterRetries },
      { key: "confirm", label: "Confirmation", description: "When a person must confirm a hand-over.", type: ["never", "more_expensive", "always"] },
      { key: "sticky", label: "Duration", description: "How long a session keeps the new model.", type: ["call", "session"] },
      { key: "unattended", label: "Unattended", description: "Questions end the incident as blocked.", type: "flag" },
    ],
  },
];

export function PolicyForm({ policy, templates, problem, change, disabled }: { policy: PolicyOut; templates: readonly string[]; problem: PolicyValidation | null; change: (settings: Settings) => void; disabled: boolean }) {
  return (
    <div class="policy-form">
      {GROUPS.map((group) => (
        <fieldset key={group.title} disabled={disabled}>
          <legend>{group.title}</legend>
          <div class="policy-fields">
            {group.fields.map((field) => (
              <FieldInput key={field.key} field={field.key === "template" ? { ...field, type: templates } : field} policy={policy} error={concernsField(problem, field) ? (problem?.message ?? "") : null} set={(value) => change(withSetting(policy.settings, field.key, value))} />
            ))}
          </div>
        </fieldset>
      ))}
      <p class="quiet small">Set models, retryable kinds, prompts and custom ladders in the TOML.</p>
    </div>
  );
}

const API_NAMES: Record<string, string> = { maxRetries: "retries", backoffBase: "backoff.base", backoffMultiplier: "backoff.multiplier", maxBackoff: "backoff.cap", autoEscalate: "auto_escalate", escalateAfterRetries: "escalate_after" };

function concernsField(problem: PolicyValidation | null, field: Field): boolean {
  const name = (problem?.field ?? "").replace(/^policy\./, "").replace(/^budget\./, "");
  return problem !== null && (API_NAMES[name] ?? name) === field.key;
}

function FieldInput({ field, policy, error, set }: { field: Field; policy: PolicyOut; error: string | null; set: (value: unknown) => void }) {
  const value = readSetting(policy.settings, field.key);
  const effectiveValue = field.effective ? field.effective(policy) : undefined;
  const id = `policy-${field.key}`;
  const common = { id, "aria-describedby": `${id}-about`, "aria-invalid": error !== null };
  return (
    <div class="field">
      <label for={id}>{field.label}</label>
      {field.type === "whole" || field.type === "number" ? (
        <input {...common} class="input" type="number" min="0" step={field.type === "whole" ? "1" : "any"} value={typeof value === "number" ? value : ""} placeholder={effectiveValue === undefined ? "" : String(effectiveValue)}
          onInput={(event) => set(event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value))} />
      ) : (
        <select {...common} class="select" value={value === undefined ? "" : String(value)} onChange={(event) => set(parseChoice(field, event.currentTarget.value))}>
          <option value="">{effectiveValue === undefined ? "not set" : `not set (${valueLabel(effectiveValue)})`}</option>
          {(field.type === "flag" ? ["true", "false"] : field.type).map((one) => (
            <option key={one} value={one} selected={String(value) === one}>{field.type === "flag" ? valueLabel(one === "true") : one}</option>
          ))}
        </select>
      )}
      <small id={`${id}-about`}>{error !== null ? <span class="error-text">{error}</span> : field.description}</small>
    </div>
  );
}

const valueLabel = (value: unknown): string => (value === true ? "yes" : value === false ? "no" : String(value));

function parseChoice(field: Field, text: string): unknown {
  if (text === "") return undefined;
  return field.type === "flag" ? text === "true" : text;
}

function readSetting(settings: Settings, key: string): unknown {
  const [outer = "", inner] = key.split(".");
  const value = settings[outer];
  if (inner === undefined) return value ?? (settings["budget"] as Settings | undefined)?.[outer];
  return typeof value === "object" && value !== null ? (value as Settings)[inner] : undefined;
}

/** Returns the settings with one value set, or removed if it is undefined. */
function withSetting(settings: Settings, key: string, value: unknown): Settings {
  const [outer = "", inner] = key.split(".");
  const changed = { ...settings };
  if (inner === undefined) {
    if (value === undefined) delete changed[outer];
    else changed[outer] = value;
    const budget = changed["budget"] as Settings | undefined;
    if (budget && outer in budget) {
      const { [outer]: _, ...rest } = budget;
      changed["budget"] = rest;
    }
    return changed;
  }
  const table = { ...((changed[outer] as Settings | undefined) ?? {}) };
  if (value === undefined) delete table[inner];
  else table[inner] = value;
  if (Object.keys(table).length > 0) changed[outer] = table;
  else delete changed[outer];
  return changed;
}
