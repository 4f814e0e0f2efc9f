// What the API sends, by the names it uses.

export type Status = "running" | "retrying" | "waiting" | "recovered" | "succeeded" | "partial" | "blocked" | "failed";

export interface Me {
  role: "read" | "act" | "admin";
  version: string;
  csrf: string;
  demo?: boolean;
}

export interface LastFailure {
  kind: string;
  message: string;
  rule: string;
}

export interface Retry {
  attempt: number;
  of: number;
  until: number | null;
}

export interface SessionRow {
  id: string;
  project: string;
  agent: string;
  model: string;
  formerModel: string | null;
  status: Status;
  beganAt: number;
  touchedAt: number;
  attempts: number;
  failures: number;
  incidents: number;
  dollars: number;
  lastFailure: LastFailure | null;
  retry: Retry | null;
}

export interface Page<T> {
  items: T[];
  nextCursor: string | null;
  total: number;
}
