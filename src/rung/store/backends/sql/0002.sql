-- Settings, audit trail, access tokens and idempotency keys. Not derived from events.

CREATE TABLE setting (
  name     TEXT PRIMARY KEY,               -- policy, policy/PROJECT, budgets, …
  body     TEXT    NOT NULL,               -- JSON
  version  {whole} NOT NULL,               -- grows with every change (optimistic locking)
  at       {real}  NOT NULL,
  who      TEXT    NOT NULL
){strict};

-- Audit trail of operator actions. Append-only.
CREATE TABLE audit (
  seq      {serial},
  at       {real} NOT NULL,
  who      TEXT   NOT NULL,
  action   TEXT   NOT NULL,
  subject  TEXT   NOT NULL,
  detail   TEXT   NOT NULL                 -- JSON, without secrets
){strict};
CREATE INDEX audit_subject ON audit (subject, at);

CREATE TABLE token (
  hash     TEXT PRIMARY KEY,               -- of the token, which is not stored itself
  name     TEXT   NOT NULL,
  role     TEXT   NOT NULL,                -- read, act, admin
  made_at  {real} NOT NULL,
  ends_at  {real}
){strict};

-- Responses to POST requests by idempotency key: the same key gets the same response.
CREATE TABLE reply (
  key      TEXT PRIMARY KEY,
  digest   TEXT    NOT NULL,               -- of the request
  status   {whole} NOT NULL,
  body     TEXT    NOT NULL,
  at       {real}  NOT NULL
){strict};
