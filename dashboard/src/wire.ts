// Written by scripts/write_wire.py from the API's OpenAPI document: change the API, then run `make wire`.

/** The chosen option. */
export interface AnswerIn {
  option: string;
  note?: string;
}

/** A question that waits for a person. */
export interface AskOut {
  incident: string;
  n: number;
  at: number;
  project: string;
  question: string;
  options: Choice[];
  estimate: number | null;
}

/** One attempt of a session. */
export interface AttemptOut {
  incident: string;
  attemptNumber: number;
  error: string;
  errorMessage: string;
  timestamp: number;
  delayMs: number;
  succeeded: boolean;
  seconds: number;
  dollars: number;
  model: string;
  rung: string;
  prompt: string;
  rule: string;
}

/** One act of a person. */
export interface AuditOut {
  seq: number;
  at: number;
  who: string;
  action: string;
  subject: string;
  detail: Record<string, unknown>;
}

/** What would this policy have done? */
export interface BacktestIn {
  policy: PolicyIn;
  project?: string | null;
  since?: number | null;
}

/** What would have been different, and what cannot be known. */
export interface BacktestOut {
  incidents: number;
  same: number;
  fewer: number;
  otherwise: number;
  unknown: number;
  goodLost: number;
  attemptsSaved: number;
  secondsSaved: number;
  dollarsSaved: number;
  differing: Differing[];
  cannotKnow: string[];
}

/** One budget and what is spent of it. */
export interface BudgetOut {
  id: string;
  scope: "month" | "project" | "session";
  name: string;
  limit: number;
  spent: number;
  share: number;
  alert: number | null;
  acknowledged: boolean;
}

/** What may be spent, in US dollars: in a month by all, by each project, and by any one session. */
export interface BudgetsIn {
  monthly?: number | null;
  session?: number | null;
  projects?: Record<string, number>;
}

/** The budgets. */
export interface BudgetsOut {
  monthly: number | null;
  session: number | null;
  projects: Record<string, number>;
  version: number;
  spentThisMonth: number;
  items: BudgetOut[];
}

/** An answer that can be given. */
export interface Choice {
  id: string;
  label: string;
}

/** What somebody said about a task. */
export interface CrewMessage {
  id: number;
  sender: string;
  kind: string;
  text: string;
  at: number | null;
}

/** A crew: who leads it, how many tasks are where, and why nothing is given out if that is so. */
export interface CrewOut {
  name: string;
  place: string;
  trouble: string;
  conductor: LeaderOut | null;
  watchdog: LeaderOut | null;
  counts: Record<string, number>;
  tasks: number;
  forPerson: number;
  facts: Record<string, string>;
}

/** One day: failures, and of how many attempts. */
export interface DayRate {
  day: string;
  at: number;
  attempts: number;
  failures: number;
  rate: number;
}

/** A figure on one day. */
export interface DayValue {
  at: number;
  value: number | null;
}

/** One incident that would have gone otherwise. */
export interface Differing {
  incident: string;
  words: string;
  was: string;
}

/** What came of an act. */
export interface Done {
  how: "ordered" | "replayed" | "answered" | "switched" | "said";
  incident?: string | null;
  note?: string;
}

/** What holds for a project. */
export interface EffectivePolicy {
  project: string;
  policy: PolicyOut;
  values: Value[];
}

/** To which model, or the token of the estimate that is confirmed. */
export interface EscalateIn {
  toModel?: string | null;
  confirm?: string | null;
}

/** An estimate to confirm, or that it is done. */
export interface EscalateOut {
  fromModel: string;
  toModel: string;
  costEstimate: number | null;
  budgetLeft: number | null;
  token: string | null;
  done: boolean;
  note: string;
}

/** A change of model. */
export interface Escalation {
  fromModel: string;
  toModel: string;
  reason: string;
  timestamp: number;
  costEstimate: number | null;
  cost: number | null;
  by: string;
}

/** What fails, how often, and of how many. */
export interface FailureAnalytics {
  totalFailures: number;
  totalAttempts: number;
  failureRate: number;
  byErrorType: Record<string, number>;
  byModel: Record<string, number>;
  topErrorMessages: MessageCount[];
  failureRateByDay: DayRate[];
  by: string;
  rates: RateOut[];
}

/** What a rung changed in the request. */
export interface FieldChange {
  n: number;
  at: number;
  field: string;
  before: string;
  after: string;
}

/** One thing that is wrong. */
export interface FieldError {
  field: string;
  message: string;
}

/** Failures that are the same trouble. */
export interface GroupOut {
  project: string;
  fingerprint: string;
  kind: string;
  message: string;
  example: string;
  firstAt: number;
  lastAt: number;
  seen: number;
  state: string;
  until: number | null;
  trend: number[];
}

/** Something that waits for a person. */
export interface InboxItem {
  id: string;
  kind: "ask" | "task" | "blocked" | "budget" | "crash" | "group";
  at: number;
  title: string;
  detail: string;
  project: string;
  incident: string | null;
  ask: AskOut | null;
  task?: string | null;
}

/** An incident, whole. */
export interface IncidentDetail {
  id: string;
  project: string;
  session: string;
  agent: string;
  model: string;
  firstModel: string;
  ladder: string;
  policy: string;
  status: string;
  reason: string;
  openedAt: number;
  endedAt: number | null;
  attempts: number;
  failures: number;
  dollars: number;
  rung: string;
  kind: string;
  fingerprint: string;
  message: string;
  parent: string;
  rungs: RungOut[];
  timeline: Moment[];
  changes: FieldChange[];
  outcome: Record<string, unknown>;
  ask: AskOut | null;
  retry: Retry | null;
  result: string | null;
}

/** One recovery. */
export interface IncidentOut {
  id: string;
  project: string;
  session: string;
  agent: string;
  model: string;
  firstModel: string;
  ladder: string;
  policy: string;
  status: string;
  reason: string;
  openedAt: number;
  endedAt: number | null;
  attempts: number;
  failures: number;
  dollars: number;
  rung: string;
  kind: string;
  fingerprint: string;
  message: string;
  parent: string;
}

/** A page of incidents. */
export interface IncidentPage {
  items: IncidentOut[];
  nextCursor: string | null;
  total: number;
}

/** The failure a session last met. */
export interface LastFailure {
  kind: string;
  message: string;
  rule: string;
}

/** The conductor or its watchdog. */
export interface LeaderOut {
  state: string;
  heartbeatAt: number | null;
  stale: boolean;
}

/** A token. */
export interface LoginIn {
  token: string;
}

/** Who asks, and what they may do. */
export interface Me {
  name: string;
  role: "read" | "act" | "admin";
  csrf: string;
  version: string;
  demo: boolean;
  journal: string;
  trouble: string;
  models: string[];
  projects: string[];
}

/** A message and how often it came. */
export interface MessageCount {
  message: string;
  count: number;
  kind: string;
  project: string;
  fingerprint: string;
  firstAt: number;
  lastAt: number;
  example: string;
  state: string;
}

/** One event, told. */
export interface Moment {
  n: number;
  at: number;
  name: string;
  mark: string;
  subject: string;
  text: string;
  more: string[];
}

/** Where to tell people what waits for them: a webhook that takes Slack's shape. Empty: nowhere. */
export interface NotificationsIn {
  webhook?: string;
}

/** A policy as it is set. The short names are for the commonest settings; `settings` takes all of ours. */
export interface PolicyIn {
  name?: string | null;
  maxRetries?: number | null;
  backoffBase?: number | null;
  backoffMultiplier?: number | null;
  maxBackoff?: number | null;
  retryableErrors?: string[] | null;
  autoEscalate?: boolean | null;
  escalateAfterRetries?: number | null;
  settings?: Record<string, unknown> | null;
  toml?: string | null;
}

/** A policy in force. */
export interface PolicyOut {
  id: string;
  name: string;
  maxRetries: number;
  backoffBase: number;
  backoffMultiplier: number;
  maxBackoff: number;
  retryableErrors: string[];
  autoEscalate: boolean;
  escalateAfterRetries: number;
  ladder: string;
  version: number;
  settings: Record<string, unknown>;
  toml: string;
  worstAttempts: number | null;
  worstSeconds: number | null;
  worstDollars: number | null;
  waits: number[];
}

/** What would be sent. */
export interface Preview {
  incident: string;
  prompt: string;
  model: string;
  models: string[];
  characters: number;
  possible: boolean;
  whyNot: string;
}

/** What went wrong. */
export interface ProblemDetails {
  type?: string;
  title: string;
  status: number;
  detail: string;
  field?: string | null;
  errors?: FieldError[];
}

/** A project that has settings of its own. */
export interface ProjectPolicy {
  project: string;
  version: number;
  at: number;
  who: string;
}

/** Failures by something, with the attempts they are a share of. */
export interface RateOut {
  key: string;
  attempts: number;
  failures: number;
  rate: number;
  dollars: number;
}

/** How incidents of a kind ended. */
export interface RecoveryOut {
  kind: string;
  incidents: number;
  recovered: number;
  partial: number;
  blocked: number;
  failed: number;
  rate: number;
  meanSeconds: number | null;
  dollars: number;
  asks: number;
  escalations: number;
}

/** What a rung, prompt or model saved, at what price. */
export interface RescueOut {
  rung: string;
  prompt: string;
  model: string;
  kind: string;
  tried: number;
  saved: number;
  seconds: number;
  dollars: number;
  meanSeconds?: number | null;
}

/** What a waiting recovery waits for: which attempt comes next, of how many, and when. */
export interface Retry {
  attempt: number;
  of: number | null;
  until: number;
}

/** Try again: as it was, told of the error, on another model, or with a prompt of one's own. */
export interface RetryIn {
  mode?: "plain" | "context" | "model" | "prompt";
  model?: string | null;
  prompt?: string | null;
}

/** A rung of an incident's ladder, and what was done on it. */
export interface RungOut {
  name: string;
  action: string;
  about: string;
  tries: number | null;
  seconds: number | null;
  state: "ahead" | "skipped" | "climbed" | "here";
  used: number;
  took: number;
  dollars: number;
}

/** A session, whole. */
export interface SessionDetail {
  id: string;
  project: string;
  agent: string;
  model: string;
  formerModel: string;
  status: "running" | "retrying" | "waiting" | "succeeded" | "recovered" | "partial" | "blocked" | "failed" | "open" | "";
  beganAt: number;
  touchedAt: number;
  incidents: number;
  attempts: number;
  failures: number;
  dollars: number;
  lastFailure: LastFailure | null;
  retry: Retry | null;
  attemptsMade: AttemptOut[];
  recoveries: IncidentOut[];
  modelChanges: Escalation[];
  cost: SpentOn[];
}

/** One agent's session. */
export interface SessionOut {
  id: string;
  project: string;
  agent: string;
  model: string;
  formerModel: string;
  status: "running" | "retrying" | "waiting" | "succeeded" | "recovered" | "partial" | "blocked" | "failed" | "open" | "";
  beganAt: number;
  touchedAt: number;
  incidents: number;
  attempts: number;
  failures: number;
  dollars: number;
  lastFailure: LastFailure | null;
  retry: Retry | null;
}

/** A page of sessions. */
export interface SessionPage {
  items: SessionOut[];
  nextCursor: string | null;
  total: number;
}

/** How long nobody wants to hear of it. */
export interface SnoozeIn {
  hours?: number;
}

/** What a model cost in a session. */
export interface SpentOn {
  model: string;
  attempts: number;
  dollars: number;
}

/** Why a crew is to end; handed over, another conductor goes on with it. */
export interface StopIn {
  why?: string;
  handOver?: boolean;
}

/** A task, whole. */
export interface TaskDetail {
  crew: string;
  id: string;
  title: string;
  state: string;
  outcome: string;
  worker: string;
  heartbeatAt: number | null;
  stale: boolean;
  progress: string;
  errorTries: number;
  redispatches: number;
  needsPerson: boolean;
  note: string;
  version: string;
  instructionPath: string;
  dependsOn: string[];
  writes: string[];
  workdir: string;
  session: string;
  generation: number;
  checkpoint: number | null;
  reviewCycles: number;
  warnings: number;
  lastError: string;
  reportPath: string;
  startedAt: number | null;
  completedAt: number | null;
  incident: string | null;
  can: ("tell" | "fix" | "approve" | "reject" | "reset" | "exit")[];
  messages: CrewMessage[];
  workers: WorkerOut[];
  story: Moment[];
}

/** A task of a crew. */
export interface TaskOut {
  crew: string;
  id: string;
  title: string;
  state: string;
  outcome: string;
  worker: string;
  heartbeatAt: number | null;
  stale: boolean;
  progress: string;
  errorTries: number;
  redispatches: number;
  needsPerson: boolean;
  note: string;
  version: string;
}

/** Tasks, those that need a person first. */
export interface TaskPage {
  items: TaskOut[];
  nextCursor: string | null;
}

/** A policy to begin with. */
export interface Template {
  id: string;
  about: string;
  policy: PolicyOut;
}

/** One figure of success, with its goal and its trend by day. */
export interface Tile {
  id: "autoRecovered" | "manualInterventions" | "stuckEscalated" | "meanTimeToRecovery";
  value: number | null;
  goal: number | null;
  of: number;
  trend: DayValue[];
}

/** A token to be made. */
export interface TokenIn {
  name: string;
  role: "read" | "act" | "admin";
  days?: number | null;
}

/** A token; the token itself only when it is made. */
export interface TokenOut {
  name: string;
  role: string;
  madeAt: number;
  endsAt: number | null;
  token?: string | null;
}

/** What is wrong with a policy, if anything. */
export interface Valid {
  valid: boolean;
  field?: string | null;
  message?: string;
  policy?: PolicyOut | null;
}

/** A value in force, and where it comes from. */
export interface Value {
  key: string;
  value: unknown;
  origin: "preset" | "file" | "service" | "project file" | "project";
}

/** What a person says. */
export interface WordsIn {
  words: string;
}

/** A process that was started for a task. */
export interface WorkerOut {
  session: string;
  launchedAt: number | null;
  endedAt: number | null;
  exitCode: number | null;
  command: string[];
}
