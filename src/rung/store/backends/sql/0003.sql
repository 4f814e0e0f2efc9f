-- Error types, and the part that people had in recoveries.

ALTER TABLE attempt ADD COLUMN error_type TEXT NOT NULL DEFAULT '';    -- of a failure; empty: that of its kind
ALTER TABLE incident ADD COLUMN orders {whole} NOT NULL DEFAULT 0;     -- interventions of operators
ALTER TABLE by_end ADD COLUMN assisted {whole} NOT NULL DEFAULT 0;     -- incidents with a question or an intervention
UPDATE by_end SET assisted = asked;

-- Failures by error type: the kind alone does not tell it, a 504 is a `timeout` and a `server_error`.
CREATE TABLE by_error_type (
  hour        {whole} NOT NULL,
  project     TEXT NOT NULL,
  model       TEXT NOT NULL,
  kind        TEXT NOT NULL,
  error_type  TEXT NOT NULL,
  n           {whole} NOT NULL,
  PRIMARY KEY (hour, project, model, kind, error_type)
){strict};

INSERT INTO by_error_type (hour, project, model, kind, error_type, n)
SELECT hour, project, model, kind,
       CASE WHEN kind IN ('rate_limit', 'quota_exhausted') THEN 'rate_limit'
            WHEN kind IN ('server_error', 'overloaded', 'service_down', 'network', 'stream_interrupted') THEN 'server_error'
            WHEN kind IN ('timeout', 'stalled') THEN 'timeout'
            WHEN kind IN ('context_limit', 'output_limit', 'context_warning') THEN 'context_limit'
            WHEN kind IN ('content_filter', 'refusal') THEN 'content_filter'
            WHEN kind = 'invalid_request' THEN 'invalid_request'
            WHEN kind IN ('auth_error', 'missing_credentials', 'permission_denied') THEN 'auth_error'
            ELSE 'unknown' END,
       SUM(n)
  FROM by_hour WHERE kind <> '' GROUP BY hour, project, model, kind;
