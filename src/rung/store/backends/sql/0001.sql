-- First schema of the journal, for both back ends; types that differ are {placeholders}.
--   {strict}: SQLite's STRICT; {real}: a 64-bit float; {whole}: a 64-bit integer; {serial}: a growing key.

-- The append-only event log: the source of truth. Rows are never updated.
CREATE TABLE event (
  seq       {serial},
  incident  TEXT     NOT NULL,
  n         {whole}  NOT NULL,             -- position in the incident: 0, 1, 2 …
  at        {real}   NOT NULL,             -- UTC seconds
  name      TEXT     NOT NULL,
  body      TEXT     NOT NULL,             -- JSON, schema `event`, without secrets
  UNIQUE (incident, n)
){strict};

-- Read models: all tables up to `run` are derived from the events and can be rebuilt from them.

CREATE TABLE request (
  digest    TEXT PRIMARY KEY,              -- equal requests are stored once
  body      TEXT     NOT NULL,
  size      {whole}  NOT NULL,             -- before clipping
  at        {real}   NOT NULL
){strict};

-- Beginnings of prompts with numbers, ids and paths masked. Pruned with the last incident; counts keep the id.
CREATE TABLE pattern (
  id        TEXT PRIMARY KEY,              -- hash of the text
  text      TEXT     NOT NULL,
  at        {real}   NOT NULL              -- last occurrence
){strict};

CREATE TABLE incident (
  id           TEXT PRIMARY KEY,
  project      TEXT NOT NULL,
  session      TEXT NOT NULL,
  agent        TEXT NOT NULL,
  ladder       TEXT NOT NULL,
  policy       TEXT NOT NULL,
  parent       TEXT NOT NULL,
  request      TEXT NOT NULL,              -- digest of the first request
  model        TEXT NOT NULL,              -- current model
  first_model  TEXT NOT NULL,
  opened_at    {real} NOT NULL,
  ended_at     {real},
  status       TEXT NOT NULL,              -- open, or how it ended
  reason       TEXT NOT NULL,
  attempts     {whole} NOT NULL,
  failures     {whole} NOT NULL,
  dollars      {real}  NOT NULL,           -- including nested recoveries
  own_dollars  {real}  NOT NULL,           -- without nested recoveries: these add up
  rung         TEXT NOT NULL,              -- highest rung used
  last_rung    TEXT NOT NULL,              -- rung on which it ended
  asks         {whole} NOT NULL,           -- questions to operators
  escalations  {whole} NOT NULL,           -- changes to another model or agent
  pattern      TEXT NOT NULL,              -- of its prompt
  kind         TEXT NOT NULL,              -- of the first failure
  fingerprint  TEXT NOT NULL,
  message      TEXT NOT NULL,
  failed_at    {real},                     -- first failure: start of the recovery time
  due_at       {real},                     -- start of the next attempt, while it waits for it
  touched_at   {real} NOT NULL
){strict};
CREATE INDEX incident_opened ON incident (opened_at);
CREATE INDEX incident_session ON incident (session, opened_at);
CREATE INDEX incident_open ON incident (status, touched_at);
CREATE INDEX incident_parent ON incident (parent) WHERE parent <> '';
-- Partial indexes for lists: calls without failures cost them nothing.
CREATE INDEX incident_troubled ON incident (opened_at) WHERE failures > 0;
CREATE INDEX incident_troubled_project ON incident (project, opened_at) WHERE failures > 0;
CREATE INDEX incident_troubled_status ON incident (status, opened_at) WHERE failures > 0;
CREATE INDEX incident_troubled_mark ON incident (fingerprint, opened_at) WHERE failures > 0;
CREATE INDEX incident_troubled_kind ON incident (kind, opened_at) WHERE failures > 0;
CREATE INDEX incident_troubled_model ON incident (model, opened_at) WHERE failures > 0;
CREATE INDEX incident_troubled_dollars ON incident (dollars, id) WHERE failures > 0;
CREATE INDEX incident_troubled_attempts ON incident (attempts, id) WHERE failures > 0;

CREATE TABLE attempt (
  incident     TEXT    NOT NULL,
  n            {whole} NOT NULL,           -- position of the event that ended it
  number       {whole} NOT NULL,           -- 1, 2, 3 …
  at           {real}  NOT NULL,
  seconds      {real}  NOT NULL,
  dollars      {real}  NOT NULL,
  project      TEXT NOT NULL,
  session      TEXT NOT NULL,
  model        TEXT NOT NULL,
  agent        TEXT NOT NULL,
  rung         TEXT NOT NULL,              -- rung of the attempt; empty for the first attempt
  prompt       TEXT NOT NULL,              -- id of the recovery prompt
  ok           {whole} NOT NULL,
  kind         TEXT NOT NULL,
  rule         TEXT NOT NULL,
  phase        TEXT NOT NULL,
  tool         TEXT NOT NULL,              -- tool that failed, or "tool" when its name is unknown
  fingerprint  TEXT NOT NULL,
  message      TEXT NOT NULL,
  PRIMARY KEY (incident, n)
){strict};
CREATE INDEX attempt_at ON attempt (at);
CREATE INDEX attempt_session ON attempt (session, at);

-- Rung history: one row each time an incident enters a rung.
CREATE TABLE level (
  incident    TEXT    NOT NULL,
  n           {whole} NOT NULL,            -- position of the decision that led to it
  place       {whole} NOT NULL,            -- index in the ladder: 0, 1, 2 …
  rung        TEXT NOT NULL,
  kind        TEXT NOT NULL,               -- of the failure that led to it
  entered_at  {real}  NOT NULL,
  left_at     {real},
  tries       {whole} NOT NULL,
  seconds     {real}  NOT NULL,
  dollars     {real}  NOT NULL,
  result      TEXT NOT NULL,               -- open, saved, failed, forced, skipped, asked, ended
  PRIMARY KEY (incident, n)
){strict};

CREATE TABLE project (
  id          TEXT PRIMARY KEY,
  incidents   {whole} NOT NULL,
  attempts    {whole} NOT NULL,
  failures    {whole} NOT NULL,
  dollars     {real}  NOT NULL,
  began_at    {real}  NOT NULL,
  touched_at  {real}  NOT NULL
){strict};

CREATE TABLE session (
  id          TEXT PRIMARY KEY,
  project     TEXT NOT NULL,
  agent       TEXT NOT NULL,
  model       TEXT NOT NULL,
  former      TEXT NOT NULL,               -- previous model
  status      TEXT NOT NULL,               -- working, recovering, waiting; or how its last incident ended
  kind        TEXT NOT NULL,               -- of its last failure
  message     TEXT NOT NULL,
  began_at    {real}  NOT NULL,
  touched_at  {real}  NOT NULL,
  incidents   {whole} NOT NULL,
  attempts    {whole} NOT NULL,
  failures    {whole} NOT NULL,
  dollars     {real}  NOT NULL
){strict};
CREATE INDEX session_touched ON session (touched_at);

-- Attempts and cost of each model in a session.
CREATE TABLE session_model (
  session     TEXT NOT NULL,
  model       TEXT NOT NULL,
  attempts    {whole} NOT NULL,
  failures    {whole} NOT NULL,
  dollars     {real}  NOT NULL,
  touched_at  {real}  NOT NULL,
  PRIMARY KEY (session, model)
){strict};

CREATE TABLE model_change (
  incident  TEXT    NOT NULL,
  n         {whole} NOT NULL,
  at        {real}  NOT NULL,
  session   TEXT NOT NULL,
  project   TEXT NOT NULL,
  from_model TEXT NOT NULL,
  to_model  TEXT NOT NULL,
  to_agent  TEXT NOT NULL,
  reason    TEXT NOT NULL,
  estimate  {real},
  dollars   {real}  NOT NULL,              -- actual cost of its attempts
  restored_at {real},                      -- when the previous model was restored
  PRIMARY KEY (incident, n)
){strict};
CREATE INDEX model_change_session ON model_change (session, at);

CREATE TABLE ask (
  incident  TEXT    NOT NULL,
  n         {whole} NOT NULL,
  at        {real}  NOT NULL,
  project   TEXT NOT NULL,
  session   TEXT NOT NULL,
  question  TEXT NOT NULL,
  options   TEXT NOT NULL,                 -- JSON: [[id, label], …]
  estimate  {real},
  model     TEXT NOT NULL,                 -- model for which approval is requested
  state     TEXT NOT NULL,                 -- waiting, answered, over (ended without an answer)
  answer    TEXT NOT NULL,
  answered_at {real},
  PRIMARY KEY (incident, n)
){strict};
CREATE INDEX ask_state ON ask (state, at);

CREATE TABLE crash (
  incident  TEXT    NOT NULL,
  n         {whole} NOT NULL,
  at        {real}  NOT NULL,
  project   TEXT NOT NULL,
  session   TEXT NOT NULL,
  what      TEXT NOT NULL,
  error     TEXT NOT NULL,
  PRIMARY KEY (incident, n)
){strict};
CREATE INDEX crash_at ON crash (at);

CREATE TABLE failure_group (
  project      TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  kind         TEXT NOT NULL,
  message      TEXT NOT NULL,              -- of the first occurrence
  example      TEXT NOT NULL,              -- id of the incident with the last occurrence
  first_at     {real}  NOT NULL,
  last_at      {real}  NOT NULL,
  count        {whole} NOT NULL,
  PRIMARY KEY (project, fingerprint)
){strict};

-- State of a group set by an operator; not derived, so a rebuild keeps it.
CREATE TABLE group_state (
  project      TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  state        TEXT NOT NULL,              -- resolved, snoozed
  at           {real} NOT NULL,
  until        {real},                     -- end of a snooze
  PRIMARY KEY (project, fingerprint)
){strict};

-- Remedies: what was tried directly after a failure, and whether it worked. Pruning keeps them.
CREATE TABLE remedy (
  project      TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  rung         TEXT NOT NULL,
  prompt       TEXT NOT NULL,
  model        TEXT NOT NULL,
  tried        {whole} NOT NULL,
  worked       {whole} NOT NULL,
  tried_at     {real}  NOT NULL,           -- the last time
  worked_at    {real}  NOT NULL,           -- last time; 0 when it never worked
  PRIMARY KEY (project, fingerprint, rung, prompt, model)
){strict};

-- Rollups, updated with every event: a report reads hundreds of rows instead of millions of attempts.

CREATE TABLE by_hour (
  hour     {whole} NOT NULL,               -- hours since 1970
  project  TEXT NOT NULL,
  model    TEXT NOT NULL,
  tool     TEXT NOT NULL,                  -- tool that failed; empty when none did
  kind     TEXT NOT NULL,                  -- empty for a success
  n        {whole} NOT NULL,
  seconds  {real}  NOT NULL,
  dollars  {real}  NOT NULL,
  PRIMARY KEY (hour, project, model, tool, kind)
){strict};

-- `by_hour` summed by day: a report over months reads a twentieth of the rows, and only its ends from `by_hour`.
CREATE TABLE by_day (
  day      {whole} NOT NULL,
  project  TEXT NOT NULL,
  model    TEXT NOT NULL,
  tool     TEXT NOT NULL,
  kind     TEXT NOT NULL,
  n        {whole} NOT NULL,
  seconds  {real}  NOT NULL,
  dollars  {real}  NOT NULL,
  PRIMARY KEY (day, project, model, tool, kind)
){strict};

CREATE TABLE by_pattern (
  day      {whole} NOT NULL,
  project  TEXT NOT NULL,
  pattern  TEXT NOT NULL,                  -- of the prompt; empty without a prompt
  n        {whole} NOT NULL,
  failures {whole} NOT NULL,
  dollars  {real}  NOT NULL,
  PRIMARY KEY (day, project, pattern)
){strict};

CREATE TABLE by_latency (
  day      {whole} NOT NULL,
  project  TEXT NOT NULL,
  model    TEXT NOT NULL,
  bucket   {whole} NOT NULL,               -- quarter octave: 2 ** (bucket / 4) milliseconds
  n        {whole} NOT NULL,
  PRIMARY KEY (day, project, model, bucket)
){strict};

CREATE TABLE by_message (
  day          {whole} NOT NULL,
  project      TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  n            {whole} NOT NULL,
  PRIMARY KEY (day, project, fingerprint)
){strict};

CREATE TABLE by_rung (
  day      {whole} NOT NULL,
  project  TEXT NOT NULL,
  kind     TEXT NOT NULL,                  -- of the incident's first failure
  rung     TEXT NOT NULL,
  prompt   TEXT NOT NULL,
  model    TEXT NOT NULL,
  tried    {whole} NOT NULL,
  saved    {whole} NOT NULL,
  seconds  {real}  NOT NULL,
  dollars  {real}  NOT NULL,
  PRIMARY KEY (day, project, kind, rung, prompt, model)
){strict};

CREATE TABLE by_end (
  day         {whole} NOT NULL,
  project     TEXT NOT NULL,
  model       TEXT NOT NULL,               -- first model
  kind        TEXT NOT NULL,               -- of the first failure; empty without failures
  status      TEXT NOT NULL,
  rung        TEXT NOT NULL,               -- last rung; empty when none was needed
  n           {whole} NOT NULL,
  recovery    {real}  NOT NULL,            -- seconds from the first failure to the end
  dollars     {real}  NOT NULL,
  asked       {whole} NOT NULL,            -- incidents in which an operator was asked
  asks        {whole} NOT NULL,            -- questions
  escalated   {whole} NOT NULL,            -- incidents with an escalation
  escalations {whole} NOT NULL,            -- changes to another model or agent
  PRIMARY KEY (day, project, model, kind, status, rung)
){strict};

-- Durable runs: owners and finished steps. Not derived from events.

CREATE TABLE run (
  id         TEXT PRIMARY KEY,
  task       TEXT NOT NULL,                -- registered function; empty for a recovery
  arguments  TEXT NOT NULL,                -- JSON
  state      TEXT NOT NULL,                -- open, done
  result     TEXT NOT NULL,                -- JSON
  epoch      {whole} NOT NULL,             -- fencing token: grows with every claim; writes with an older one are rejected
  owner      TEXT NOT NULL,                -- JSON: host, boot, namespace, pid, start; empty when unowned
  lease      {real}  NOT NULL,             -- expiry, UTC seconds
  idle       {whole} NOT NULL,             -- claims since the last new step
  made_at    {real}  NOT NULL,
  touched_at {real}  NOT NULL
){strict};
CREATE INDEX run_open ON run (state, lease);

CREATE TABLE step (
  run     TEXT NOT NULL,
  key     TEXT NOT NULL,
  result  TEXT NOT NULL,                   -- JSON
  at      {real} NOT NULL,
  PRIMARY KEY (run, key)
){strict};

CREATE TABLE message (
  topic   TEXT NOT NULL,
  body    TEXT NOT NULL,                   -- JSON
  at      {real} NOT NULL,
  PRIMARY KEY (topic)
){strict};
