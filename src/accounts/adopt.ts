/**
 * Projects and tokens of another gateway, in the store: a token is known by the hash of its key, so that clients keep it. Done
 * again, it changes what differs from the source, and nothing where nothing does.
 */
import { spanAt } from '../calls/budgets/budget-window.ts'
import { sha256 } from '../kit/secret.ts'
import { UNSET_SETTINGS } from '../spec/account-settings.ts'
import type { AuditOrigin } from '../spec/audit.ts'
import { toNano } from '../spec/price.ts'
import { type LedgerEntry, NO_CALL } from '../store/ledger/ledger-entry.ts'
import type { Store } from '../store/store.ts'
import type { StoredProject, StoredToken } from '../store/tokens/account-store.ts'
import { accountEvent } from './account-event.ts'
import { differing } from './declare-token.ts'
import { type AccountSettings, readSettings } from './settings.ts'

export type AdoptedProject = {
  project_id: string
  settings: Partial<AccountSettings> & { name: string }
  disabled: boolean
  /** In the currency of the ledger, as its source counts it for this account alone; undefined: it does not. */
  used: number | undefined
  /** When its source begins to count anew (unix seconds). */
  resets_at?: number | undefined
}
export type AdoptedToken = Omit<AdoptedProject, 'project_id'> & {
  token_id: string
  project_id: string | null
  hash: string
  prefix: string
  /** Whether the same id may have another key later; otherwise it is the id of another token. */
  mayRotate: boolean
}
/** Whether their source lets each of its tokens call; others with the same origin it has no more. */
type Known = { origin: string; tokens: ReadonlyMap<string, boolean> }

type AdoptParts = {
  store: Pick<Store, 'tokens' | 'projects' | 'ledger'>
  now_ms: number
  by: AuditOrigin
}
type Outcome = 'added' | 'changed' | 'same' | 'kept'
export type Adopted = { kind: 'project' | 'token'; name: string; outcome: Outcome; why?: string }

/** How much of what its source has counted is in the ledger; and how much will be, of an import that is not through yet. */
const USED_LABEL = 'import/spend'
const NEXT_LABEL = 'import/spend-next'
/** How often its source has begun a new window: the same sums, a window later, are other entries. */
const WINDOWS_LABEL = 'import/spend-windows'
const RESETS_LABEL = 'import/spend-resets'
/** Before every window of now, except that without an end. */
const LIFETIME_AGE_MS = 32 * 86_400_000
/** Tells whether the key of the source is another than before. */
const KEY_LABEL = 'import/key'
export const ORIGIN_LABEL = 'import/source'
type Labels = Record<string, string>

type Given = { projects: readonly AdoptedProject[]; tokens: readonly AdoptedToken[]; known?: Known | undefined }

/** Throws an Error, before anything is written, where the accounts are those of another instance of the source. */
export async function adoptAccounts({ projects, tokens, known }: Given, parts: AdoptParts): Promise<Adopted[]> {
  const adopted: Adopted[] = []
  const stored = new Map((await parts.store.tokens.list()).map((token) => [token.token_id, token]))
  for (const { token_id, hash, mayRotate, settings } of tokens) {
    const present = stored.get(token_id)
    if (present && !mayRotate && !isSameKey(present, hash))
      throw new Error(
        `the token ${settings.name} has another key than the one that was imported with its id; another instance needs a name: --instance`,
      )
  }
  if (known) adopted.push(...(await revokeOthers([...stored.values()], known, parts)))
  for (const project of projects) adopted.push(await adoptProject(project, parts))
  for (const token of tokens) adopted.push(await adoptToken(token, parts))
  return adopted
}

const keyMark = (hash: string): string => sha256(hash).slice(0, 16)

/** Whether the source has the key that it had at the last import, whatever the token has here by now. */
function isSameKey({ hash, previous_hash, labels }: StoredToken, given: string): boolean {
  const mark = labels[KEY_LABEL]
  return mark === undefined ? hash === given || previous_hash === given : mark === keyMark(given)
}

async function revokeOthers(stored: StoredToken[], { origin, tokens }: Known, parts: AdoptParts): Promise<Adopted[]> {
  const mine = stored.filter(({ labels }) => labels[ORIGIN_LABEL] === origin)
  const gone = mine.filter(({ token_id }) => tokens.get(token_id) !== true)
  if (gone.length > 0 && !mine.some(({ token_id }) => tokens.has(token_id))) {
    const why = 'the source has none of them: it is a part, or another instance, which needs a name: --instance'
    return [{ kind: 'token', name: `${gone.length} of ${origin}`, outcome: 'kept', why }]
  }
  const adopted: Adopted[] = []
  for (const token of gone) {
    if (token.disabled) continue
    await changeToken(token, { disabled: true }, parts)
    const why = 'revoked: the source has it no more, or refuses it'
    adopted.push({ kind: 'token', name: token.name, outcome: 'changed', why })
  }
  return adopted
}

const changeToken = (
  { token_id, project_id }: Pick<AdoptedToken, 'token_id' | 'project_id'>,
  fields: Partial<StoredToken>,
  parts: AdoptParts,
) =>
  parts.store.tokens.update(token_id, fields, (before, after) => ({
    ...accountEvent({ ...parts, action: 'token.update' }, token_id, project_id),
    before: shown(before),
    after: shown(after),
  }))

/** A setting that the source has no longer is unset here. */
const settingsOf = ({ settings }: Pick<AdoptedProject, 'settings'>) => ({
  ...UNSET_SETTINGS,
  ...readSettings(settings, 0),
})

/** The labels of what is recorded stay, and what was revoked here stays so. */
function changesOf<Row extends StoredToken | StoredProject>(
  present: Row,
  next: Partial<Row>,
  disabled: boolean,
): Partial<Row> {
  const { name: _, labels, ...rest } = next
  const own = Object.entries(present.labels).filter(([label]) =>
    [USED_LABEL, NEXT_LABEL, WINDOWS_LABEL, RESETS_LABEL].includes(label),
  )
  const kept = { ...labels, ...Object.fromEntries(own) }
  return differing(present, { ...rest, labels: kept, disabled: present.disabled || disabled } as Partial<Row>)
}

async function adoptProject(given: AdoptedProject, parts: AdoptParts): Promise<Adopted> {
  const { project_id, disabled } = given
  const { projects } = parts.store
  const settings = settingsOf(given)
  const name = given.settings.name
  const adopted = { kind: 'project', name } as const
  const present = await projects.find(project_id)
  if (present?.deleted_at) return { ...adopted, outcome: 'kept', why: 'it was deleted here' }
  const fields = present ? changesOf(present, settings, disabled) : {}
  const isChanged = Object.keys(fields).length > 0
  if (isChanged) {
    const audit = accountEvent({ ...parts, action: 'project.update' }, project_id, project_id)
    await projects.update(project_id, fields, (before, after) => ({ ...audit, before, after }))
  }
  if (!present) {
    const dates = { created_at: secondsOf(parts), deleted_at: null }
    const fresh = { ...settings, project_id, disabled, log_contents: null, ...dates }
    const audit = accountEvent({ ...parts, action: 'project.create' }, project_id, project_id)
    const names = [name, `${name} (imported)`, `${name} (${project_id})`].map((one) => one.slice(0, 100))
    for (const one of names) {
      if (await projects.add({ ...fresh, name: one } as StoredProject, { ...audit, after: { project_id, name: one } }))
        break
    }
  }
  await recordUsed({ ...given, id: project_id, token_id: '', labels: present?.labels }, parts, (change) =>
    projects.update(project_id, ({ labels }) => ({ labels: change(labels) })),
  )
  return { ...adopted, outcome: present ? (isChanged ? 'changed' : 'same') : 'added' }
}

async function adoptToken(given: AdoptedToken, parts: AdoptParts): Promise<Adopted> {
  const { token_id, project_id, hash, prefix, disabled } = given
  const { tokens } = parts.store
  const read = settingsOf(given)
  const settings = { ...read, labels: { ...read.labels, [KEY_LABEL]: keyMark(hash) } }
  const name = given.settings.name
  const adopted = { kind: 'token', name } as const
  const present = await tokens.find(token_id)
  let outcome: Outcome = 'same'
  let why: string | undefined
  if (present) {
    const isRotated = !isSameKey(present, hash)
    const other = isRotated ? await tokens.findByHash(hash) : undefined
    if (other && other.token_id !== token_id)
      return { ...adopted, outcome: 'kept', why: `the token ${other.token_id} has its new key` }
    const mark = present.labels[KEY_LABEL]
    if (isRotated && mark !== undefined && mark !== keyMark(present.hash))
      return { ...adopted, outcome: 'kept', why: 'its key was rotated here and in the source' }
    const key = isRotated && { hash, previous_hash: null, previous_expires_at: null }
    if (isRotated) why = 'with its new key'
    const fields = changesOf(present, { ...settings, project_id, ...key }, disabled)
    if (Object.keys(fields).length > 0) {
      await changeToken(given, fields, parts)
      outcome = 'changed'
    }
  } else {
    const other = await tokens.findByHash(hash)
    if (other) return { ...adopted, outcome: 'kept', why: `the token ${other.token_id} has this key` }
    const key = { hash, prefix, previous_hash: null, previous_expires_at: null }
    const dates = { created_at: secondsOf(parts), last_used_at: null }
    const token: StoredToken = {
      ...(settings as AccountSettings),
      name,
      token_id,
      project_id,
      ...key,
      disabled,
      ...dates,
    }
    const event = accountEvent({ ...parts, action: 'token.create' }, token_id, project_id)
    await tokens.add(token, { ...event, after: shown(token) })
    outcome = 'added'
  }
  await recordUsed({ ...given, id: token_id, labels: present?.labels }, parts, (change) =>
    tokens.update(token_id, ({ labels }) => ({ labels: change(labels) })),
  )
  return { ...adopted, outcome, ...(why !== undefined && { why }) }
}

const secondsOf = ({ now_ms }: AdoptParts): number => Math.floor(now_ms / 1000)

const shown = ({ hash: _, previous_hash: __, ...token }: StoredToken) => token

type Spent = Pick<AdoptedToken, 'token_id' | 'project_id' | 'used' | 'resets_at' | 'settings'> & {
  id: string
  labels: Labels | undefined
}
type Change = (labels: Labels) => Labels

/**
 * Records what was spent since the last import; all of it where the source has begun a new window. The sum is noted before its
 * entries are written, so that an import after one that was interrupted writes the same ones, which changes nothing if they are there.
 */
async function recordUsed(
  { used, resets_at, labels = {}, ...account }: Spent,
  parts: AdoptParts,
  change: (change: Change) => Promise<unknown>,
): Promise<void> {
  const { now_ms, store } = parts
  let recorded = Number(labels[USED_LABEL] ?? 0)
  let windows = Number(labels[WINDOWS_LABEL] ?? 0)
  // Without a window the source counts for ever: no window of now has it, and a lower sum is a correction.
  const spans = account.settings.budgets?.filter(({ window }) => window !== 'total') ?? []
  const isLifetime = spans.length === 0
  // As early as its window allows: what was spent in a month is not spent today.
  const starts = spans.map((budget) => spanAt(budget, now_ms).start_ms)
  const at_ms = isLifetime ? now_ms - LIFETIME_AGE_MS : Math.max(...starts)
  const end = async (sum: number): Promise<void> => {
    // The same sums, later, are other entries.
    if (sum < recorded) windows++
    await store.ledger.append(entriesOf(account, { from: recorded, to: sum, windows, at_ms }))
    await change(({ [NEXT_LABEL]: _, ...rest }) => ({
      ...rest,
      [USED_LABEL]: String(sum),
      ...(windows > 0 && { [WINDOWS_LABEL]: String(windows) }),
    }))
    recorded = sum
  }
  if (labels[NEXT_LABEL] !== undefined) await end(Number(labels[NEXT_LABEL]))
  if (used === undefined || used < 0) return
  const known = Number(labels[RESETS_LABEL] ?? Number.NaN)
  // An end that is moved before it has come begins no window.
  const isPast = resets_at !== undefined && resets_at > known && known * 1000 <= now_ms
  const isNew = !isLifetime && recorded > 0 && (used < recorded || isPast)
  const marks =
    resets_at !== undefined && !isLifetime && resets_at !== known ? { [RESETS_LABEL]: String(resets_at) } : {}
  if (isNew) {
    windows++
    recorded = 0
    await change((present) => ({ ...present, ...marks, [USED_LABEL]: '0', [WINDOWS_LABEL]: String(windows) }))
  } else if (used === recorded && Object.keys(marks).length > 0) await change((present) => ({ ...present, ...marks }))
  if (used === recorded) return
  await change((present) => ({ ...present, ...marks, [NEXT_LABEL]: String(used) }))
  await end(used)
}

type Sums = { from: number; to: number; windows: number; at_ms: number }

/** The source counts a project by itself: what a token has used is taken from it again, so that each call counts once in every sum. */
function entriesOf(
  { id, token_id, project_id }: Pick<Spent, 'id' | 'token_id' | 'project_id'>,
  { from, to, windows, at_ms }: Sums,
): LedgerEntry[] {
  const amount = toNano(to) - toNano(from)
  const entry: LedgerEntry = {
    ...NO_CALL,
    entry_id: `import:${id}:${toNano(from)}:${toNano(to)}${windows > 0 ? `:${windows}` : ''}`,
    kind: 'adjustment',
    at_ms,
    call_id: 'import',
    token_id,
    project_id,
    amount,
    cost: amount,
  }
  if (token_id === '' || project_id === null) return [entry]
  return [entry, { ...entry, entry_id: `${entry.entry_id}:project`, token_id: '', amount: -amount, cost: -amount }]
}
