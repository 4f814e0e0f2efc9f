-- What people say and set: policies, orders' traces, who may do what. Not read off events.

CREATE TABLE setting (
  name     TEXT PRIMARY KEY,               -- policy, policy/PROJECT, budgets, …
  body     TEXT    NOT NULL,               -- JSON
  version  {whole} NOT NULL,               -- grows with every change; who changes an older one is refused
  at       {real}  NOT NULL,
  who      TEXT    NOT NULL
){strict};

-- Every act of a person, as it was done. Nothing here is ever changed.
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
  hash     TEXT PRIMARY KEY,               -- of the token; the token itself is nowhere
  name     TEXT   NOT NULL,
  role     TEXT   NOT NULL,                -- read, act, admin
  made_at  {real} NOT NULL,
  ends_at  {real}
){strict};

-- What a POST with an idempotency key was answered: the same key gets the same answer.
CREATE TABLE reply (
  key      TEXT PRIMARY KEY,
  digest   TEXT    NOT NULL,               -- of what was asked
  status   {whole} NOT NULL,
  body     TEXT    NOT NULL,
  at       {real}  NOT NULL
){strict};
