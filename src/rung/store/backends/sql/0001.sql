-- The first schema of the journal. One text for both stores: what differs stands in {braces}.
--   {strict}: SQLite's STRICT; {real}: a 64-bit float; {whole}: a 64-bit integer; {serial}: a growing key.

-- The only truth: what happened, in the order it was written down. Nothing here is ever changed.
CREATE TABLE event (
  seq       {serial},
  incident  TEXT     NOT NULL,
  n         {whole}  NOT NULL,             -- its place in the incident: 0, 1, 2 …
  at        {real}   NOT NULL,             -- UTC seconds
  name      TEXT     NOT NULL,
  body      TEXT     NOT NULL,             -- JSON, schema `event`, without secrets
  UNIQUE (incident, n)
){strict};

-- Everything from here to the runs is read off the events, and can be made again from them.

CREATE TABLE request (
  digest    TEXT PRIMARY KEY,              -- what is asked twice is kept once
  body      TEXT     NOT NULL,
  size      {whole}  NOT NULL,             -- before it was cut
  at        {real}   NOT NULL
){strict};

-- How prompts begin, with numbers, ids and paths masked. Goes with the last incident of its own; counts keep its id.
CREATE TABLE pattern (
  id        TEXT PRIMARY KEY,              -- a hash of it
  text      TEXT     NOT NULL,
  at        {real}   NOT NULL              -- when it was last seen
){strict};

CREATE TABLE incident (
  id           TEXT PRIMARY KEY,
  project      TEXT NOT NULL,
  session      TEXT NOT NULL,
  agent        TEXT NOT NULL,
  ladder       TEXT NOT NULL,
  policy       TEXT NOT NULL,
  parent       TEXT NOT NULL,
  request      TEXT NOT NULL,              -- the digest of the first one
  model        TEXT NOT NULL,              -- now
  first_model  TEXT NOT NULL,
  opened_at    {real} NOT NULL,
  ended_at     {real},
  status       TEXT NOT NULL,              -- open, then how it ended
  reason       TEXT NOT NULL,
  attempts     {whole} NOT NULL,
  failures     {whole} NOT NULL,
  dollars      {real}  NOT NULL,           -- with what recoveries within it spent
  own_dollars  {real}  NOT NULL,           -- without: these add up
  rung         TEXT NOT NULL,              -- the highest one used
  last_rung    TEXT NOT NULL,              -- the one it ended on
  asks         {whole} NOT NULL,           -- questions put to a person
  escalations  {whole} NOT NULL,           -- hand-overs to another model or agent
  pattern      TEXT NOT NULL,              -- of its prompt
  kind         TEXT NOT NULL,              -- of the first failure
  fingerprint  TEXT NOT NULL,
  message      TEXT NOT NULL,
  failed_at    {real},                     -- the first failure: where the time to recovery begins
  due_at       {real},                     -- when the next attempt begins, while it waits for that
  touched_at   {real} NOT NULL
){strict};
CREATE INDEX incident_opened ON incident (opened_at);
CREATE INDEX incident_session ON incident (session, opened_at);
CREATE INDEX incident_open ON incident (status, touched_at);
CREATE INDEX incident_parent ON incident (parent) WHERE parent <> '';
-- What a person looks through: most calls go well at once, and cost these nothing.
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
  n            {whole} NOT NULL,           -- the event it ended with
  number       {whole} NOT NULL,           -- 1, 2, 3 …
  at           {real}  NOT NULL,
  seconds      {real}  NOT NULL,
  dollars      {real}  NOT NULL,
  project      TEXT NOT NULL,
  session      TEXT NOT NULL,
  model        TEXT NOT NULL,
  agent        TEXT NOT NULL,
  rung         TEXT NOT NULL,              -- on which it was made; empty: the first one
  prompt       TEXT NOT NULL,              -- the recovery prompt it was given
  ok           {whole} NOT NULL,
  kind         TEXT NOT NULL,
  rule         TEXT NOT NULL,
  phase        TEXT NOT NULL,
  tool         TEXT NOT NULL,              -- in which it failed: its name, or "tool" where nobody knows it
  fingerprint  TEXT NOT NULL,
  message      TEXT NOT NULL,
  PRIMARY KEY (incident, n)
){strict};
CREATE INDEX attempt_at ON attempt (at);
CREATE INDEX attempt_session ON attempt (session, at);

-- A row for every rung that an incident stood on, each time it did: the level records.
CREATE TABLE level (
  incident    TEXT    NOT NULL,
  n           {whole} NOT NULL,            -- the decision that led there
  place       {whole} NOT NULL,            -- in the ladder: 0, 1, 2 …
  rung        TEXT NOT NULL,
  kind        TEXT NOT NULL,               -- of the failure that led there
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
  former      TEXT NOT NULL,               -- the model before this one
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

-- What each model did and cost in a session.
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
  dollars   {real}  NOT NULL,              -- what its attempts really cost
  restored_at {real},                      -- when the work went back to the former model
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
  model     TEXT NOT NULL,                 -- that leave is asked for to hand over to
  state     TEXT NOT NULL,                 -- waiting, answered, over: it ended without an answer
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
  message      TEXT NOT NULL,              -- of the first one seen
  example      TEXT NOT NULL,              -- an incident it happened in
  first_at     {real}  NOT NULL,
  last_at      {real}  NOT NULL,
  count        {whole} NOT NULL,
  PRIMARY KEY (project, fingerprint)
){strict};

-- A person's word about a group; it outlives a rebuild.
CREATE TABLE group_state (
  project      TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  state        TEXT NOT NULL,              -- resolved, snoozed
  at           {real} NOT NULL,
  until        {real},                     -- of a snooze
  PRIMARY KEY (project, fingerprint)
){strict};

-- What was tried right after a failure, and whether it worked: the memory. It outlives what is pruned.
CREATE TABLE remedy (
  project      TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  rung         TEXT NOT NULL,
  prompt       TEXT NOT NULL,
  model        TEXT NOT NULL,
  tried        {whole} NOT NULL,
  worked       {whole} NOT NULL,
  tried_at     {real}  NOT NULL,           -- the last time
  worked_at    {real}  NOT NULL,           -- the last time; 0: never
  PRIMARY KEY (project, fingerprint, rung, prompt, model)
){strict};

-- Rollups: kept as events arrive, so that a report reads hundreds of rows where there are millions of attempts.

CREATE TABLE by_hour (
  hour     {whole} NOT NULL,               -- since 1970
  project  TEXT NOT NULL,
  model    TEXT NOT NULL,
  tool     TEXT NOT NULL,                  -- in which it failed; empty: in none
  kind     TEXT NOT NULL,                  -- empty: it was good
  n        {whole} NOT NULL,
  seconds  {real}  NOT NULL,
  dollars  {real}  NOT NULL,
  PRIMARY KEY (hour, project, model, tool, kind)
){strict};

-- The same by the day: over months a report reads a twentieth of the rows, and takes the hours at its ends from above.
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
  pattern  TEXT NOT NULL,                  -- of the prompt; empty: there was none
  n        {whole} NOT NULL,
  failures {whole} NOT NULL,
  dollars  {real}  NOT NULL,
  PRIMARY KEY (day, project, pattern)
){strict};

CREATE TABLE by_latency (
  day      {whole} NOT NULL,
  project  TEXT NOT NULL,
  model    TEXT NOT NULL,
  bucket   {whole} NOT NULL,               -- a quarter of an octave: 2 ** (bucket / 4) milliseconds
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
  kind     TEXT NOT NULL,                  -- what it was to cure
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
  model       TEXT NOT NULL,               -- the first one
  kind        TEXT NOT NULL,               -- of the first failure; empty: there was none
  status      TEXT NOT NULL,
  rung        TEXT NOT NULL,               -- the last one; empty: none was needed
  n           {whole} NOT NULL,
  recovery    {real}  NOT NULL,            -- seconds from the first failure to the end
  dollars     {real}  NOT NULL,
  asked       {whole} NOT NULL,            -- incidents in which a person was asked
  asks        {whole} NOT NULL,            -- questions
  escalated   {whole} NOT NULL,            -- incidents that were handed over
  escalations {whole} NOT NULL,            -- hand-overs
  PRIMARY KEY (day, project, model, kind, status, rung)
){strict};

-- Durable runs. Not read off events: who owns what, and the steps that are done.

CREATE TABLE run (
  id         TEXT PRIMARY KEY,
  task       TEXT NOT NULL,                -- the registered function; empty: a call of its caller's
  arguments  TEXT NOT NULL,                -- JSON
  state      TEXT NOT NULL,                -- open, done
  result     TEXT NOT NULL,                -- JSON of how it ended
  epoch      {whole} NOT NULL,             -- grows with every claim; a writer with an older one is refused
  owner      TEXT NOT NULL,                -- JSON: host, boot, namespace, pid, start; empty: nobody
  lease      {real}  NOT NULL,             -- until when
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
