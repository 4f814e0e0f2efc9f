"""Classification rules for the system's messages in other languages than English: of the C library, the shell and git."""

from __future__ import annotations

from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.domain.failures import Evidence, Kind, Phase

_TOOL: Final = (Phase.TOOL,)

# In order: German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Polish, Czech, Turkish, Russian, Ukrainian,
# Chinese, Japanese, Korean. Apostrophes are deleted from phrases and texts: "n'existe" is "nexiste".
TRANSLATED: Final = (
    ClassifyRule(
        id="translated-used-up",
        kind=Kind.RESOURCE_EXHAUSTED,
        why="The system's message for exhausted memory, disk or file handles, in another language.",
        example=Evidence(text="dd: Auf dem Gerät ist kein Speicherplatz mehr verfügbar", phase=Phase.TOOL, exit_code=1),
        phase=_TOOL,
        output_has=(
            "kein speicherplatz", "nicht genügend * speicher/hauptspeicher/arbeitsspeicher", "zu viele offene dateien", "aucun espace disponible", "espace disque insuffisant", "allouer de la mémoire", "trop de fichiers ouverts",
            "no queda espacio", "asignar memoria", "demasiados ficheros/archivos abiertos", "spazio esaurito", "allocare memoria", "troppi file aperti", "não há espaço", "alocar memória", "muitos arquivos abertos",
            "geen ruimte meer", "onvoldoende geheugen", "te veel open bestanden", "enheten är full", "allokera minne", "brak miejsca na", "przydzielić pamięci", "není volné místo", "alokovat paměť", "boş yer yok", "bellek ayrılamadı",
            "не осталось свободного места", "недостаточно места", "выделить память", "слишком много открытых файлов", "недостатньо місця", "забагато відкритих файлів",
            "没有空间", "空间不足", "无法分配内存", "打开的文件过多", "已無多餘空間", "無法配置記憶體", "空き領域がありません", "メモリを確保できません", "ファイルを開きすぎ", "남은 공간이 없", "메모리를 할당할 수 없",
        ),
    ),
    ClassifyRule(
        id="translated-denied",
        kind=Kind.PERMISSION_DENIED,
        why="The system's message for denied access, in another language.",
        example=Evidence(text="cat: /etc/shadow: Keine Berechtigung", phase=Phase.TOOL, exit_code=1),
        phase=_TOOL,
        output_has=(
            "keine berechtigung", "zugriff verweigert", "operation ist nicht erlaubt", "operation nicht zulässig", "dateisystem ist nur lesbar", "permission non accordée", "permission refusée", "accès refusé", "opération non permise", "en lecture seulement", "en lecture seule",
            "permiso denegado", "acceso denegado", "operación no permitida", "de sólo lectura", "de solo lectura", "permesso negato", "accesso negato", "operazione non permessa", "in sola lettura", "permissão negada", "acesso negado", "operação não permitida", "somente para leitura",
            "toegang geweigerd", "actie is niet toegestaan", "alleen lezen", "åtkomst nekas", "åtkomst nekad", "operationen inte tillåten", "skrivskyddat filsystem", "brak dostępu", "odmowa dostępu", "operacja niedozwolona", "wyłącznie do odczytu",
            "operace zamítnuta", "přístup odepřen", "operace není povolena", "erişim engellendi", "erişim reddedildi", "izin verilmedi", "отказано в доступе", "операция не позволена", "только для чтения", "відмовлено у доступі", "дію заборонено",
            "权限不够", "权限被拒绝", "拒绝访问", "不允许的操作", "只读文件系统", "不符權限", "許可がありません", "許可されていない", "アクセスが拒否", "読み込み専用", "허가 거부", "액세스가 거부", "읽기전용",
        ),
    ),
    ClassifyRule(
        id="translated-port-taken",
        kind=Kind.CONFIGURATION,
        why="The system's message for an address in use, in another language.",
        example=Evidence(text="bind: Die Adresse wird bereits verwendet", phase=Phase.TOOL, exit_code=1),
        phase=_TOOL,
        output_has=(
            "adresse wird bereits verwendet", "adresse déjà utilisée", "dirección ya se está usando", "indirizzo già in uso", "endereço já em uso", "adres is al in gebruik", "adressen redan upptagen", "adres jest już w użyciu", "adresa je užívána",
            "adres zaten kullanımda", "адрес уже используется", "адресу вже використано", "地址已在使用", "位址已經有在使用", "アドレスは既に使用中", "주소가 이미 사용",
        ),
    ),
    ClassifyRule(
        id="translated-timeout",
        kind=Kind.TIMEOUT,
        retryable=True,
        why="The system's message for a time limit that has passed, in another language.",
        example=Evidence(text="ssh: Die Wartezeit für die Verbindung ist abgelaufen", phase=Phase.TOOL, exit_code=255),
        phase=_TOOL,
        output_has=(
            "wartezeit * abgelaufen", "zeitüberschreitung", "expiration du délai", "délai * dépassé", "expiró el tiempo", "tiempo de espera * agotado", "connessione scaduta", "tempo esgotado", "verbinding is verlopen", "tidsgräns löpte ut", "przekroczony czas", "překročen časový limit",
            "zaman aşımı", "время ожидания * истекло", "превышено время ожидания", "інтервал очікування", "连接超时", "超过时间", "連線超過時間", "タイムアウトしました", "시간 초과",
        ),
    ),
    ClassifyRule(
        id="translated-network",
        kind=Kind.NETWORK,
        retryable=True,
        why="The system's message for a failed connection, in another language.",
        example=Evidence(text="ssh: connect to host build: Verbindungsaufbau abgelehnt", phase=Phase.TOOL, exit_code=255),
        phase=_TOOL,
        output_has=(
            "verbindungsaufbau abgelehnt", "verbindung * zurückgesetzt", "netzwerk ist nicht erreichbar", "name oder dienst nicht bekannt", "connexion refusée", "connexion ré initialisée", "réseau nest pas accessible", "nom ou service inconnu", "conexión rehusada", "conexión rechazada", "conexión reinicializada", "red es inaccesible",
            "nombre o servicio desconocido", "connessione rifiutata", "rete non è raggiungibile", "nome o servizio sconosciuto", "conexão recusada", "rede está fora de alcance", "nome ou serviço desconhecido", "verbinding is geweigerd", "netwerk is onbereikbaar", "förbindelsen förvägrad", "nätverket kan inte nås",
            "połączenie odrzucone", "sieć jest niedostępna", "spojení odmítnuto", "síť není dostupná", "bağlantı reddedildi", "ağ erişilebilir", "в соединении отказано", "сеть недоступна", "соединение разорвано", "у зєднанні відмовлено",
            "拒绝连接", "连接被拒绝", "连接被对方重设", "网络不可达", "未知的名称或服务", "連線被拒絕", "無法接觸網路", "接続を拒否されました", "接続が相手からリセット", "ネットワークに届きません", "연결이 거부", "네트워크가 접근 불가능",
        ),
    ),
    ClassifyRule(
        id="translated-bad-option",
        kind=Kind.CONFIGURATION,
        why="The program's message for an unknown option or command, in another language.",
        example=Evidence(text="sort: Unbekannte Option »--nope«", phase=Phase.TOOL, exit_code=2),
        phase=_TOOL,
        output_has=(
            "unbekannte/ungültige option", "unbekannter befehl", "ungültiges argument", "option non reconnue", "option invalide/inconnue", "argument invalide", "opción no reconocida", "opción inválida/desconocida", "argumento inválido", "opzione non riconosciuta", "opzione non valida", "opção não reconhecida", "opção inválida", "argumento inválido",
            "onbekende/ongeldige optie", "okänd/ogiltig flagga", "nieznana/nieprawidłowa opcja", "nerozpoznaný přepínač", "neplatný přepínač", "tanınmayan/geçersiz seçenek", "нераспознанный/неверный/неизвестный параметр", "неизвестный ключ", "невідомий параметр",
            "未识别的选项", "无效选项", "不适用的选项", "無法識別", "不正なオプション", "認識されないオプション", "인식할 수 없는 옵션", "부적절한 옵션",
        ),
    ),
    ClassifyRule(
        id="translated-not-there",
        kind=Kind.NOT_FOUND,
        why="The message for a file, command or repository that does not exist, in another language.",
        example=Evidence(text="ls: Zugriff auf 'a' nicht möglich: Datei oder Verzeichnis nicht gefunden", phase=Phase.TOOL, exit_code=2),
        phase=_TOOL,
        output_has=(
            "nicht gefunden", "nicht finden", "existiert nicht", "kein git repository", "aucun fichier ou dossier", "introuvable", "nexiste pas", "nest pas reconnu en tant que", "nest un dépôt git", "pas un dépôt git", "no existe", "no encontrado/encontrada", "no se encontró", "no se encuentra", "encontrar el archivo",
            "no se reconoce como", "no es un repositorio git", "non esistente", "non esiste", "non trovato/trovata", "non è un repository", "inexistente", "não existe", "não encontrado/encontrada", "não foi encontrado/encontrada", "bestaat niet", "niet gevonden", "finns inte", "hittades inte", "inte ett git arkiv",
            "nie ma takiego", "nie znaleziono", "nie istnieje", "nie jest repozytorium", "neexistuje", "nenalezen/nenalezena/nenalezeno", "böyle bir dosya", "bulunamadı", "komut yok", "нет такого", "не найден/найдена/найдено", "не существует", "немає такого", "не знайдено", "не існує",
            "没有那个文件", "未找到", "找不到", "不存在", "不是 git 仓库", "沒有此一檔案", "不是一個 git", "そのようなファイル", "見つかりません", "存在しません", "파일이나 디렉터리가 없", "찾을 수 없", "존재하지 않", "깃 저장소가 아닙니다",
        ),
    ),
)  # fmt: skip
