"""Concepts: what words of a message are about, in several languages. Rules combine them into statements.

A concept is a list of expressions, separated by commas. An expression is one or more words that follow each other,
normalized as `phrases` does it: lower case, no punctuation, each Chinese, Japanese or Korean character a word.
"""

from __future__ import annotations

from typing import Final

CONCEPTS: Final = {
    # -- what a statement is about
    "prompt": (
        "prompt, prompts, input, inputs, context, conversation, messages, history, tokens, token count, token limit, sequence, seq len, string,"
        " transcript, n ctx, n keep, request body, chat history, token length, payload, 上下文, 输入, 提示词, 内容长度,"
        " anfrage, anfrageinhalt, eingabe, kontext, контекст, запрос, contexte, entrée, entrada, contexto, 入力, コンテキスト, 입력, 컨텍스트, 토큰, トークン, 令牌数"
    ),
    "output": (
        "budget tokens, max tokens is, max tokens must, max tokens value, max tokens too, max tokens parameter, tokens you requested, output tokens for, number of output, completion tokens, array, max output tokens, max completion tokens,"
        " max new tokens, maximum output"
    ),
    "attachment": "image, images, pdf, file, pixels, dimensions, dimension, audio, video, attachment, blocks, base64, page, pages",
    "batch": "batch size, batch limit, max batch, per batch, submitted batch, in batch, the batch, your batch, maximum batch, texts per, inputs per, number of inputs, number of texts, number of documents",
    "name": "name, names, description, title, metadata",
    "model": (
        "model, models, deployment, deployments, engine, endpoint, function id, inference profile, adapter, checkpoint, 模型, モデル, 모델, modell, modèle,"
        " modelo, модель"
    ),
    "money": (
        "quotas, квоту, квоты, クォータ, 割り当て, 할당량, kontingents, nutzungskontingent, forfait, quote, 額度, 配額, 方案, crédit, crédits, créditos, kredit, балансе, баланса, средства, クレジット, allocation, free allocation, allotment, nutzungslimit, límite de uso, limite de uso, limite dutilisation, лимит использования, 利用上限, 利用制限, 使用上限, 사용량, 이용 한도, подписка, abonnement, suscripción, assinatura, balance, account, inference limit, credit, credits, coins, 积分, funds, fund, your points, points balance, billing, payment, invoice, arrears, arrearage, prepaid, recharge, top up, topup, subscription, wallet,"
        " spend, spending, spending cap, prepayment, account balance, free tier, free quota, trial, plan, quota, preconsumedquota, allowance, resource pack, 余额, 欠费,"
        " 充值, 额度, 配额, 套餐, 账户, 残高, 잔액, 크레딧, guthaben, solde, saldo, баланс, средств, кредит, квота, лимит использования, kontingent, cuota, cota"
    ),
    "budget": "budget, max budget",
    "credential": (
        "clave de api, clave api, chave de api, chave api, clé api, clé dapi, jeton daccès, token de acceso, token de acesso, zugriffstoken, zugangstoken, токен доступа, アクセストークン, 액세스 토큰, api ключ, ключ api, апи ключ, api schlüssels, subscription key, api key, apikey, api keys, access key, subscription key, your key, the key, invalid key, key has been, auth, credential, credentials, access token, refresh token, auth token, bearer token, api token, bearer, password, secret, login, oauth,"
        " authentication, authorization header, auth cookie, certificate, request signature, access signature, the signature, signature you, signature does, session token, appid, api密钥, 密钥, 令牌, 签名, 鉴权, 身份验证, 身份认证, ключ, api schlüssel, clé,"
        " clave, 認証, apiキー, 키, 인증, api 키"
    ),
    "access": (
        "access, permission, permissions, privilege, privileges, scope, scopes, role, region, country, location, territory, organization, organisation, project,"
        " ip, workspace, tenant, 权限, 访问, 地区, 国家, 액세스, 권한, доступ, местоположение, zugriff, berechtigung, accès, acceso, 権限, アクセス"
    ),
    "service": (
        "service, services, slot, slots, replica, replicas, endpoint, server, servers, api, backend, upstream, system, provider, gateway, platform, cluster, worker, workers, host, resource, function,"
        " 分组, 渠道, 服务, 服务器, 系统, 上游, 平台, サーバー, サービス, 서버, 서비스, dienst, serveur, servicio, servidor, сервер, сервис, служба"
    ),
    "connection": (
        "connection, connect, connecting, connected, socket, network, dns, host, proxy, tunnel, handshake, tls, ssl, tcp, fetch, fetching, internet, vpn, 连接, 网络,"
        " 接続, ネットワーク, 연결, 네트워크, verbindung, connexion, conexión, соединение, подключение, подключиться"
    ),
    "stream": "stream, streaming, sse, chunk, chunks, event stream, mid response, response body, message chunk, streamed, 流式, 流, ストリーム, 스트림, nachrichtenchunks",
    "content": (
        "content, prompt, prompts, input, inputs, output, text, words, message, request, response, image, answer, completion, 提示词, 内容, 输入, 输出, 文本, 콘텐츠, コンテンツ, inhalt, contenu, contenido,"
        " контент, содержимое"
    ),
    "parameter": (
        "parameter, parameters, level, effort, thinking, 思考, 推理, reasoning, temperature, options, option, content block, search, param, params, argument, arguments, field, fields, schema, property, properties, body, json, header, headers, role, roles,"
        " value, format, type, tool choice, tools, tool, function, messages, message, request, url, path, method, 参数, 字段, 格式, 请求, パラメータ, 매개변수, 파라미터, параметр"
    ),
    "field": (
        "parameter, parameters, param, params, argument, arguments, field, fields, option, options, schema, property, level, effort, thinking, 思考, 推理, reasoning, temperature,"
        " search, content block, tool choice, beta, header, stream options, response format, 参数, 字段"
    ),
    "thing": "path, route, url, uri, cached content, cachedcontent, version, provider, assistant, batch, vector store, skill, job, user, item, items, entity, record, response, conversation, thread, session, collection, table, page, document, resource, file, object, row, status code",
    "memory": "memory, vram, gpu memory, ram, disk, disk space, storage, cuda, oom, kv cache, swap, file descriptors, heap, 内存, 显存, 磁盘, メモリ, 메모리, speicher, память",
    "reached": "reached, exceeded, maximum, max, exhausted",
    "turns": "iteration, iterations, turns, steps, rounds, max turns",
    "answer": "json, output, response, tool call, tool calls, function call, arguments, structured output, structured outputs, answer, completion, generation, xml, yaml",
    "setting": "configuration, config, settings, setting, option, options, environment variable, base url, flag, install, installed, version, certificate, setup, 配置, 设置, 設定, 설정, einstellung, konfiguration, configuración, настройки",
    "per time": (
        "for the hour, for this hour, this hour, requests an hour, messages an hour, calls an hour, 每小时, 每小時, 時間あたり, 시간당, pro stunde, par heure, por hora, в час, per minute, per second, per hour, per day, per 1 minute, tpm, rpm, rps, qps, tpd, rpd, minute, requests per, tokens per, request limit exceeded, requests limit exceeded, token bucket, qpm, itpm, too often, too frequently, too frequent, слишком частый, слишком часто, лимит запросов, слишком много запросов, concurrency, concurrent,"
        " in parallel, 每分钟, 每秒, 频率, 并发, 速率, 分钟, 분당, 초당, pro minute, в минуту, por minuto, par minute"
    ),
    "per day": "本日, 当天, 오늘, heute, hoy, hoje, сегодня, mensuel, mensual, mensal, ежедневный, сегодняшний, дневной, суточный, недельный, месячный, diario, diária, daily, per day, weekly, monthly, week, month, today, tpd, rpd, per week, per month, 每日, 每天, 今日, 每月, 当日, 하루, 일일, 1日, день, täglich, hourly",
    "process": "runner, runner process, model runner, worker process, engine core, engine process, inference process, model process, server process, backend process, inference server, child process",
    # -- what it says of it
    "too many": (
        "too many requests, requests too quickly, requests too fast, requests too rapidly, messages too quickly, messages too fast, calls too quickly, calls too fast, going too fast, sent too many messages, sent too many prompts, sending too many messages, sending messages too, too many messages sent, too many messages recently, zu viele anfragen, zu viele nachrichten, trop de messages, demasiados mensajes, слишком много сообщений, trop de requêtes, demasiadas solicitudes, demasiadas peticiones, muitas requisições, muitas solicitações, troppe richieste,"
        " te veel verzoeken, zbyt wiele żądań, çok fazla istek, слишком много запросов, превышен лимит запросов, リクエストが多すぎ, リクエスト数が, 要求が多すぎ, 요청이 너무 많, 請求過多, 请求过多,"
        " 请求太多, 请求次数过多, 请求过于频繁, 过于频繁, 过快, 调用频率"
    ),
    "spent": "used up, used all, exhausted, depleted, consumed, run out, ran out, no more, aufgebraucht, agotado, épuisé, esgotado, исчерпан, 用完, 用尽, 耗尽",
    "place": "ip, region, country, location, territory, geographic, firewall, virtual network, ip address, your ip, ip range, allowlist, allow list, 地区, 国家, местоположение",
    "exceeds": (
        "超长, 已达上限, 达到上限, 已用完, 已用尽, に達し, 한도 초과, exceed, exceeds, exceeded, exceeding, too long, too large, too big, longer than, larger than, more than, greater than, bigger than, less than, over the, beyond,"
        " grown past, outgrown, outgrows, no longer fits, wont fit, cannot fit, above max, above maximum, maximum length, max length, overflow, overflows, overflowed, does not fit, doesnt fit, cannot truncate, at most, smaller than,"
        " oversized, too many, exceeds max, maximum allowed, max allowed, the max input, 超过, 超出, 超限, 过长, 太长, 過長, überschreitet, überschritten, zu lang, zu groß, превышает, превышен, превышена,"
        " слишком длинный, слишком большой, слишком много, dépasse, dépassé, trop long, excede, supera, demasiado largo, 超え, 초과, 너무 길"
    ),
    "used up": (
        "превысили, превысил, превышена, превышены, überschritten, überzogen, superado, superato, superata, esaurito, esaurita, excedeu, excedió, ultrapassou, ultrapassado, ultrapassada, dépassée, 超過, 超过, 超え, insuficientes, insuffisants, insuffisante, erschöpft, esgotado, esgotada, agotada, épuisée, исчерпана, закончился, 達しました, 達した, 도달, erreicht, atteint, atteinte, alcanzado, atingido, достигнут, insufficient, not enough, not sufficient, exhausted, depleted, ran out, run out, used up, exceeded, exceed, reached, negative, zero, no remaining, none left, overdue, bill overdue,"
        " in arrears, frozen, suspended, paused, unpaid, payment required, recharge required, top up required, subscription required, credits required, lacks, out of, past due, declined, lapsed, is gone, is full, insufficiente, insufficienti, too low, low balance, cannot be allocated, limit, 不足, 用完, 耗尽, 已用尽, 欠费, 超出, 用尽, 已达, 上限,"
        " 부족, 초과, 不足し, недостаточно, исчерпан, закончились, превышен, unzureichend, aufgebraucht, insuffisant, épuisé, dépassé, insuficiente, agotado, excedida, excedido, superada, is not enough"
    ),
    "absent": (
        "no está disponible, não está disponível, nest pas disponible, не доступна, существует, nexiste pas, existiert nicht, não existe, não encontrado, no encontrado, no se encontró, non trouvé, wurde nicht gefunden, 찾을 수 없, 利用できません, not found, does not exist, doesnt exist, not exist, no such, unknown, cannot find, could not find, couldnt find, unable to find, could not resolve, not available,"
        " not running, not deployed, unloaded, not loaded, not enabled, not activated, not active, retired, deprecated, decommissioned, removed, discontinued, sunset, turned off, switched off, shut off, taken offline, phased out, closed, disabled, fade out,"
        " faded out, no longer, end of life, no access, not have access, incorrect, invalid, wrong,"
        " not open, not opened, not purchased, not recognised, not recognized, unrecognized, unrecognised, offline, not authorized, not yet available, not accessible, degraded function, is degraded, no endpoints, no available, no route, notfound, 不存在, 未找到, 找不到, 已下线, 下线, 未开通,"
        " 未激活, 无权限, 无权使用, 无权访问, 错误, 없는, 없습니다, 존재하지, 存在しません, 見つかりません, nicht gefunden, nicht verfügbar, introuvable, no existe, не найден, не найдена, не существует"
    ),
    "unavailable": "unavailable, not available",
    "out of service": "unavailable, 不可用, 暂不可用, nicht verfügbar, недоступен, indisponible, no disponible",
    "no channel": "no valid channel, no available channel, 无可用渠道, 没有可用渠道, 没有可用的渠道",
    "gone": "not found, does not exist, doesnt exist, cannot be found, could not be found, no such, notfound",
    "unsupported": "not supported, do not support, not support, unsupported, isnt supported, not permitted, not allowed, does not support, doesnt support, 不支持",
    "withheld": "only available, only offered, not part of, not included in, reserved for, limited to use, restricted to use, 限制使用, 仅限使用, not supported, unsupported, isnt supported, not permitted, not allowed, 不支持的, 不支持该, 不支持此, 不支持模型",
    "incapable": "does not support, doesnt support, do not support, dont support, not capable, cannot handle, not able to, 不支持",
    "invalid": (
        "no es válida, no es válido, não é válida, nest pas valide, ungültiger, ungültige, ungültiges, abgelaufen, expirée, expiré, expirado, expirada, неверен, недействителен, истек, истёк, 禁用, 停用, 期限切れ, 만료, 유효 하지, 유효하지, invalid, incorrect, wrong, malformed, bad, not valid, isnt valid, expired, revoked, rejected, mismatch, unrecognized, not recognized, disabled, deactivated, blocked, illegal,"
        " unverified, failed, fails, could not authenticate, unable to authenticate, not accepted, only authorized, only allowed, allowed only, leaked, deleted, error, noautherror, no auth, not authorized, unauthorized, denied,"
        " refused, 无效, 错误, 不正确, 已过期, 过期, 失败, 非法, 有误, 잘못된, 유효하지, 無効, 不正, ungültig, falsch, invalide, incorrecte, inválida, inválido, incorrecta, неверный, недействительный, неправильный"
    ),
    "missing": (
        "did not find, didnt find, not passed, please carry, please include, please supply, не указан, не задан, fehlender, fehlende, manquant, no se proporcionó, não fornecida, missing, did not pass, didnt pass, did not provide, didnt provide, did not supply, not supplied, wasnt supplied, not included in, not present in, not sent, without a valid, not set, isnt set, is not set, not provided, wasnt provided, was not provided, not configured, no auth available, не установлен, no api key, must be set, required, empty, undefined, unset, not specified,"
        " please provide, please set, need to provide, is null, no key, no password, no token, no credentials, is provided in, not logged in, please login, please log in, 缺少, 未提供, 未设置, 未配置, 请先登录, 为空, 없음, 필요, 未設定, 設定されていません, 指定されていません, fehlt, manquante, falta, отсутствует, пустой"
    ),
    "denied": (
        "not in allowlist, not in the allowlist, not on the allowlist, not whitelisted, 허용되지, denied, forbidden, not allowed, not permitted, not authorized, unauthorized, no permission, blocked, restricted, not supported, unsupported, insufficient, missing, lacks,"
        " does not have, doesnt have, dont have, rejected, refused, prohibited, cannot access, no access, disabled, 拒绝, 禁止, 无权, 没有权限, 不支持, 거부, 없습니다, 拒否, не поддерживает,"
        " запрещен, verweigert, refusé, denegado"
    ),
    "busy": (
        "überlastet, saturé, surchargée, sobrecargado, sobrecarregado, перегружена, 混み合, 과부하, временно недоступна, временно недоступен, временно недоступно, vorübergehend nicht verfügbar, temporairement indisponible, temporalmente no disponible, temporariamente indisponível, 暂时不可用, 暂不可用, 一時的に利用できません, 일시적으로, busy, overloaded, overload, saturated, capacity, high demand, high load, heavy load, congested, is loading, currently loading, still loading, being loaded, model loading, warming up, queue full, queue is full, too many requests, high traffic,"
        " unable to start processing, unable to handle the request, starting up, resuming, waking up, not ready, request limit reached, no instances, 没有可用, 无可用, scaling, temporarily unavailable, 负载, 饱和, 繁忙, 过载, 忙, 拥挤, 混雑, 혼잡, ausgelastet, surchargé, saturado, перегружен"
    ),
    "down": (
        "being upgraded, is upgrading, under upgrade, 升级中, 正在升级, manutenção, техническое обслуживание, maintenance, outage, is degraded, are degraded, degraded service, service degraded, degraded state, disruption, is down, will return soon, be back, incident, shutdown, shutting down, temporarily offline, not responding, unreachable,"
        " not running, stopped, 维护, 停止, 故障, 宕机, メンテナンス, 점검, wartung, en maintenance, mantenimiento, обслуживание"
    ),
    "sensitive": (
        "content is blocked, content was blocked, audit failed, censorship, censored, prompt blocked, prompt was blocked, 拦截, sensitive, inappropriate, policy, policies, safety, unsafe, harmful, risk, risky, moderation, flagged, filter, filtered, violate, violates, violation, violating, guardrail,"
        " guidelines, prohibited, explicit, 敏感, 不安全, 违规, 违禁, 不合规, 违反, 安全, 审核, 风险, 不适当, 민감한, 不適切, нарушает, unangemessen, inapproprié, inapropiado"
    ),
    "fails": (
        "failed, fail, failure, fails, refused, reset, closed, lost, offline, disconnected, dropped, aborted, timed out, unable, cannot, could not, couldnt, error, issue, broken, terminated, unreachable, 失败,"
        " 无法, 拒绝, 错误, 断开, 超时, 실패, 거부, 失敗, できません, fehlgeschlagen, konnte nicht, fehler, échec, impossible, refusée, refusé, error, falló, rechazada, не удалось, отказано, ошибка"
    ),
    "cut": (
        "interrupted, closed, ended, terminated, incomplete, aborted, cut off, cut, broken, disconnected, prematurely, unexpectedly, before completion, before completed, without, idle timeout, no stream activity,"
        " no chunk, no chunks, no data, no event, no events, no further, dropped, truncated, failed to parse, could not parse, parsing, decoding, parsen, lost, stalled, more expected, 中断, 断开, 终止, 解析失败, 中断され, 끊"
    ),
    "timed out": "timeout, timed out, time out, time limit, deadline exceeded, deadline, timedout, etimedout, took too long, not respond in time, 超时, タイムアウト, 시간 초과, zeitüberschreitung, délai, тайм аут, лимит времени, время ожидания, expiró",
    "must": (
        "must, should, expected, expects, cannot, can only, cant, invalid, missing, required, not allowed, unexpected, unsupported, not supported, illegal, range, between, not permitted, does not match, not valid,"
        " malformed, bad request, duplicate, conflict, not found, only supports, incorrect, check failed, mutually exclusive, 必须, 无效, 非法, 不合法, 不支持, 错误, 有误, 不能, 缺少, должен, 올바르지, 무효, 不正"
    ),
    "unparsable": (
        "parse, parsed, parsing, unparsable, not valid json, invalid json, malformed, unterminated, unexpected token, unexpected end, decode, jsondecodeerror, expecting value, not a valid, invalid, failed to call a,"
        " no tool, did not match, does not match, empty, not produce, did not provide, no response, expecting property, extra data"
    ),
    "json error": "xml syntax error, create valid json, generate valid json, produce valid json, return valid json, no valid json, unable to get json, non json response, not return json, not return valid json, invalid json response, unterminated string, unexpected end of json, unexpected token, expecting property name, extra data line, not valid json",
    "died": "no longer running, has terminated, was terminated, terminated, crashed, has died, died, exited, unexpectedly stopped, stopped unexpectedly, is dead, was killed, got killed",
    "broke": "unexpected problem, unexpected issue, unexpected condition, unexpected failure, something broke, broke on our, broken on our, temporary issue, temporary problem, temporary error, temporary glitch, technical difficulties, error was encountered, backend error, upstream error, upstream failed, upstream request failed, provider returned error, internal error, internal failure, crashed, panicked, unexpected error, server error, went wrong, panic, segfault, failed to process, error in processing, unable to process, 내부, 内部错误, 服务器错误, 未知错误, interner",
    "wrong setup": "invalid, incorrect, not correct, wrong, missing, not installed, not configured, must end with, must start with, upgrade, mismatch, incompatible, not compatible, set, unsupported, only supports, self signed, verify failed, 不正确, 错误, 正しくありません, 올바르지, falsch, inkorrekt",
    "unrecognized": "mandatory, requires, unrecognized, unrecognised, unknown parameter, unknown field, unknown argument, unknown key, unknown name, not recognized, extra",
    "amiss": "cannot be empty, must not be empty, cannot be null, must not be null, is required, are required, must be, is mandatory, 不能为空, 不可为空, 必填, 缺少, 错误, 有误, 无效",
    "shorten": "压缩, 缩短, 精简, 減ら, 줄여, shorten",
    "template": "raise exception, prompt template, chat template, jinja template",
    "bad schema": "invalid schema, invalid json schema, schema is invalid, schema is not valid, invalid schema for, json schema not supported, unsupported json schema, schema is not supported",
    # -- of the output of tools
    "rejected": "rejected, invalid, incorrect, denied, not accepted, expired, revoked, failed, not valid, wrong",
    "transfer": "transfer, download, upload, response, read, incompleteread, body, stream",
    "link": "connection, connect, dial tcp, lookup, resolve, resolving, socket, network, tls, ssl, handshake, reply from server, wrong version number, dns",
    "no answer": "no such host, empty reply, unreachable, server misbehaving, wrong version number, no response, verify failed, self signed, terminated, lost",
    "json text": "json, json parse, json term",
    "config file": "package json, cargo toml, pyproject toml, yaml, tsconfig json, docker compose, toml, manifest",
    "option": (
        "option, options, argument, arguments, keyword argument, flag, parameter, parameters, script, manifest, edition, subcommand, variable, tty, setting, toolchain, input file, action"
    ),
}
