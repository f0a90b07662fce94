/**
 * Reads a running LiteLLM or New API by its admin API, as the rows of its tables. Its key is in a file or in the environment,
 * never among the arguments. https://docs.litellm.ai/docs/proxy/virtual_keys, https://docs.newapi.pro/en/docs/api
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { asRecord, isRecord } from '../../kit/json.ts'
import { readAll } from '../../kit/read-all.ts'
import { whyUnreadable } from '../../kit/why-unreadable.ts'
import { checkedAddress } from '../admin-api.ts'
import type { Arguments } from '../arguments.ts'
import type { Terminal } from '../terminal.ts'
import type { Draft, SourceName } from './imported.ts'
import type { Row, Tables } from './sql-dump.ts'

type Body = Record<string, unknown>
type Running = {
  draft: Draft
  /** Throws an Error that names the path, without a secret. */
  call(path: string, body?: object): Promise<unknown>
}

type Reader = {
  /** The variable with the key. */
  variable: string
  headers(key: string, environment: Terminal['environment']): Record<string, string>
  read(running: Running): Promise<Tables>
}

const READERS: Partial<Record<SourceName, Reader>> = {
  litellm: {
    variable: 'LITELLM_MASTER_KEY',
    headers: (key) => ({ authorization: `Bearer ${key}` }),
    read: readLiteLlm,
  },
  'new-api': {
    variable: 'NEW_API_ACCESS_TOKEN',
    // The user whose access token it is; 1 is the first administrator.
    headers: (key, { NEW_API_USER }) => ({ authorization: key, 'new-api-user': NEW_API_USER || '1' }),
    read: readNewApi,
  },
}

const TIMEOUT_MILLISECONDS = 30_000
const MAX_BYTES = 64 * 1024 * 1024
const MOST_PAGES = 10_000
/** Of all pages of a list: as of a dump. */
const MOST_ROWS = 1_000_000
const MAX_LIST_BYTES = 256 * 1024 * 1024
const PAGE = 100

export const isAddress = (from: string): boolean => /^https?:\/\//i.test(from)

type Parts = { from: string; name: SourceName; given: Arguments; terminal: Terminal }

export async function readRunning(draft: Draft, { from, name, given, terminal }: Parts): Promise<Tables> {
  const reader = READERS[name]
  if (!reader)
    throw new Error(`${name} has no admin API that this import reads; give a file, see gatehouse import --help`)
  const address = checkedAddress(from, given.has('insecure'))
  const headers = reader.headers(keyOf(reader, given, terminal), terminal.environment)
  return reader.read({ draft, call: (path, body) => call(address, { path, headers, body }) })
}

function keyOf({ variable }: Reader, given: Arguments, { cwd, environment }: Terminal): string {
  const file = given.text('key')
  const key = file === undefined ? environment[variable] : readKey(resolve(cwd, file), file)
  if (key === undefined || key.trim() === '') {
    throw new Error(`the admin API needs a key: --key <file>, or the variable ${variable}`)
  }
  if (!/^[\x21-\x7e]+$/.test(key.trim())) throw new Error('the key of the admin API must be one line without spaces')
  return key.trim()
}

function readKey(path: string, name: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(`--key: ${name} cannot be read: ${whyUnreadable(error)}`)
  }
}

type Sent = { path: string; headers: Record<string, string>; body: object | undefined }

async function call(address: URL, { path, headers, body }: Sent): Promise<unknown> {
  const at = `${address.href.replace(/\/+$/, '')}${path}`
  const shown = `${address.host}${path.replace(/\?.*$/, '')}`
  const response = await fetch(at, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    // A redirect would take the key elsewhere.
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS),
  }).catch(() => {
    throw new Error(`nothing answers at ${address.host}`)
  })
  const text = await textOf(response, shown)
  if (response.status === 401 || response.status === 403)
    throw new Error(`${shown} refuses the key (${response.status})`)
  if (!response.ok && /(database|db) (not )?connected/i.test(text)) throw new NoDatabase(`${shown} has no database`)
  if (!response.ok) throw new Error(`${shown} answers with status ${response.status}`)
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${shown} answers with something else than JSON`)
  }
}

async function textOf(response: Response, shown: string): Promise<string> {
  if (!response.body) return ''
  const tooLarge = () => new Error(`${shown} answers with more than ${MAX_BYTES} bytes`)
  return new TextDecoder().decode(await readAll(response.body, tooLarge, MAX_BYTES))
}

/** LiteLLM without a database has models only. */
class NoDatabase extends Error {}

/** Throws where there is no list: a source that was not read is not an empty one. */
function rowsOf(value: unknown, path: string): Row[] {
  // Go writes an empty list as null.
  if (value !== null && !Array.isArray(value)) throw new Error(`${path} answers without a list of rows`)
  return (value ?? []).filter(isRecord)
}

type Page = {
  rows: Row[]
  /** How many pages or rows there are, where the answer says it. */
  pages?: unknown
  total?: unknown
  /** A list alone: its first page may be 0, and its pages may be shorter than what was requested. */
  isPlain?: boolean
}

/** `path`: with what the number of the page is put behind. An empty page is the last one. A row is taken once, by `key`. */
async function allPages({ call, draft }: Running, path: string, of: (body: Body) => Page, key: string): Promise<Row[]> {
  const list = path.replace(/\?.*$/, '')
  const rows = new Map<unknown, Row>()
  let bytes = 0
  const read = async (page: number) => {
    const before = rows.size
    const read = of(asRecord(await call(`${path}${page}`)))
    for (const row of read.rows) rows.set(row[key] ?? rows.size, row)
    bytes += JSON.stringify(read.rows).length
    return { ...read, hasNew: rows.size > before }
  }
  for (let page = 1; page <= MOST_PAGES; page++) {
    const { rows: found, pages, total, isPlain, hasNew } = await read(page)
    if (isPlain && page === 1) await read(0)
    if (rows.size > MOST_ROWS || bytes > MAX_LIST_BYTES)
      throw new Error(
        `${list} has more than ${MOST_ROWS} rows or ${MAX_LIST_BYTES} bytes; import a dump of its database`,
      )
    const isLast =
      typeof pages === 'number'
        ? page >= pages
        : typeof total === 'number'
          ? rows.size >= total
          : isPlain
            ? !hasNew
            : found.length < PAGE
    if (!isLast && found.length > 0) continue
    if (typeof total === 'number' && rows.size < total)
      draft.dropped(list, `it has ${total} rows and shows ${rows.size}: import again while it does not change`)
    return [...rows.values()]
  }
  throw new Error(`${list} has more than ${MOST_PAGES} pages`)
}

async function readLiteLlm(running: Running): Promise<Tables> {
  const { call, draft } = running
  const models = asRecord(await call('/model/info'))
  draft.dropped(
    '/model/info',
    'it has no keys of providers, own prices, fallbacks, aliases and settings; import config.yaml too',
  )
  const tables: Tables = new Map([['LiteLLM_ProxyModelTable', rowsOf(models.data, '/model/info').map(withoutMasks)]])
  const all = (path: string, member: string, key: string) => {
    const of = ({ total_pages, total_count, total, [member]: rows }: Body) =>
      ({
        rows: rowsOf(rows, path.replace(/\?.*$/, '')),
        pages: total_pages,
        total: total_count ?? total,
      }) satisfies Page
    return allPages(running, `${path}=${PAGE}&page=`, of, key)
  }
  try {
    const keys = await all('/key/list?return_full_object=true&size', 'keys', 'token')
    tables.set('LiteLLM_VerificationToken', keys.map(accountOf))
    tables.set('LiteLLM_UserTable', (await all('/user/list?page_size', 'users', 'user_id')).map(accountOf))
    tables.set('LiteLLM_TeamTable', rowsOf(await call('/team/list'), '/team/list').map(accountOf))
    tables.set('LiteLLM_BudgetTable', rowsOf(await call('/budget/list'), '/budget/list'))
  } catch (error) {
    if (!(error instanceof NoDatabase)) throw error
    draft.dropped('/key/list', 'it runs without a database, so it has no keys, teams and users')
  }
  return tables
}

/** Secrets are left out, or shown with asterisks; `model_info` has what LiteLLM knows of the model besides what was written. */
function withoutMasks(row: Row): Row {
  const isMasked = (value: unknown) => typeof value === 'string' && value.includes('****')
  const params = Object.entries(asRecord(row.litellm_params)).flatMap(([name, value]) => {
    if (value === false) return []
    if (!isMasked(value)) return [[name, value]]
    // The key of one address is not that of another.
    const host = URL.parse(String(asRecord(row.litellm_params).api_base))
      ?.host.toUpperCase()
      .replaceAll(/[^A-Z0-9]+/g, '_')
    return name === 'api_key' && host ? [[name, `os.environ/KEY_OF_${host}`]] : []
  })
  const { mode, base_model, access_groups } = asRecord(row.model_info)
  return {
    model_name: row.model_name,
    litellm_params: Object.fromEntries(params),
    model_info: {
      ...(mode !== undefined && { mode }),
      ...(base_model !== undefined && { base_model }),
      ...(access_groups !== undefined && { access_groups }),
    },
  }
}

/** The columns of the tables; an answer has computed members besides. */
const COLUMNS = [
  'token key_alias key_name team_id team_alias user_id user_alias user_email expires blocked spend models rpm_limit',
  'tpm_limit tpd_limit max_parallel_requests max_budget soft_budget budget_duration budget_reset_at budget_id',
  'allowed_routes aliases config permissions metadata model_max_budget organization_id object_permission_id',
  'router_settings access_group_ids policies budget_limits tags guardrails prompts rotation_interval auto_rotate',
].flatMap((names) => names.split(' '))

const accountOf = (row: Row): Row => Object.fromEntries(Object.entries(row).filter(([name]) => COLUMNS.includes(name)))

async function readNewApi(running: Running): Promise<Tables> {
  const list = (path: string) => {
    const of = ({ success, message, data }: Body): Page => {
      if (success === false) throw new Error(`${path}: ${String(message ?? 'it is refused').slice(0, 200)}`)
      if (isRecord(data)) return { rows: rowsOf(data.items, path), total: data.total }
      // Older versions answer with a list alone, and count its pages from 0.
      return { rows: rowsOf(data, path), isPlain: true }
    }
    return allPages(running, `${path}?page_size=${PAGE}&p=`, of, 'id')
  }
  const channels = await list('/api/channel/')
  const users = await list('/api/user/')
  const tokens = await list('/api/token/')
  const self = asRecord(asRecord(await running.call('/api/user/self')).data).id
  const others = users.filter(({ id }) => id !== self && !tokens.some(({ user_id }) => user_id === id))
  if (others.length > 0) {
    running.draft.dropped('/api/token/', `it lists the tokens of user ${self}; those of others are in the database`)
  }
  return new Map([
    // Their keys are not listed.
    ['channels', channels.map((row) => ({ ...row, key: `\${CHANNEL_${row.id}_KEY}` }))],
    ['users', users],
    ['tokens', await withKeys(running, tokens)],
    ['options', await optionsOf(running)],
  ])
}

/** What everybody may see: the quota of a dollar. */
async function optionsOf({ call, draft }: Running): Promise<Row[]> {
  draft.dropped('/api/option/', 'its prices and ratios are not read; import its database')
  const status = asRecord(asRecord(await call('/api/status')).data)
  return [
    { key: 'QuotaPerUnit', value: status.quota_per_unit },
    { key: 'AutoGroups', value: null },
  ]
}

/** Newer versions list keys with asterisks, and show them to their owner only. */
async function withKeys({ call }: Running, tokens: Row[]): Promise<Row[]> {
  const masked = tokens.filter(({ key }) => typeof key === 'string' && key.includes('*'))
  const shown: Body = {}
  for (let at = 0; at < masked.length; at += PAGE) {
    const ids = masked.slice(at, at + PAGE).map(({ id }) => id)
    Object.assign(shown, asRecord(asRecord(asRecord(await call('/api/token/batch/keys', { ids })).data).keys))
  }
  return tokens.map((row) => (masked.includes(row) ? { ...row, key: shown[String(row.id)] ?? null } : row))
}
