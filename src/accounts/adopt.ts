/**
 * Projects and tokens of another gateway, in the store: a token is known by the hash of its key, so that clients keep it. Done
 * again, it changes what differs from the source, and nothing where nothing does.
 */
import { UNSET_SETTINGS } from '../spec/account-settings.ts'
import type { AuditOrigin } from '../spec/audit.ts'
import { toNano } from '../spec/price.ts'
import { NO_UNITS } from '../spec/usage.ts'
import type { LedgerEntry } from '../store/ledger/ledger-entry.ts'
import type { Store } from '../store/store.ts'
import type { StoredProject, StoredToken } from '../store/tokens/account-store.ts'
import { differing } from './declare-token.ts'
import { type AccountSettings, readSettings } from './settings.ts'

export type AdoptedProject = {
  project_id: string
  settings: Partial<AccountSettings> & { name: string }
  disabled: boolean
  /** In the currency of the ledger; what its tokens have used is in it. */
  used: number
}
export type AdoptedToken = Omit<AdoptedProject, 'project_id'> & {
  token_id: string
  project_id: string | null
  hash: string
  prefix: string
}

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
type Labels = Record<string, string>

export async function adoptAccounts(
  { projects, tokens }: { projects: readonly AdoptedProject[]; tokens: readonly AdoptedToken[] },
  parts: AdoptParts,
): Promise<Adopted[]> {
  const adopted: Adopted[] = []
  for (const project of projects) adopted.push(await adoptProject(project, parts))
  for (const token of tokens) adopted.push(await adoptToken(token, parts))
  return adopted
}

const auditOf = ({ by, now_ms }: AdoptParts, action: string, id: string, project_id: string | null) => ({
  ...by,
  at_ms: now_ms,
  action,
  object_type: action.split('.')[0] ?? '',
  object_id: id,
  project_id,
})

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
    [USED_LABEL, NEXT_LABEL, WINDOWS_LABEL].includes(label),
  )
  const kept = { ...labels, ...Object.fromEntries(own) }
  return differing(present, { ...rest, labels: kept, disabled: present.disabled || disabled } as Partial<Row>)
}

async function adoptProject(given: AdoptedProject, parts: AdoptParts): Promise<Adopted> {
  const { project_id, disabled, used } = given
  const { projects } = parts.store
  const settings = settingsOf(given)
  const name = given.settings.name
  const adopted = { kind: 'project', name } as const
  const present = await projects.find(project_id)
  if (present?.deleted_at) return { ...adopted, outcome: 'kept', why: 'it was deleted here' }
  let outcome: Outcome = 'same'
  if (present) {
    const fields = changesOf(present, settings, disabled)
    if (Object.keys(fields).length > 0) {
      await projects.update(project_id, fields, (before, after) => ({
        ...auditOf(parts, 'project.update', project_id, project_id),
        before,
        after,
      }))
      outcome = 'changed'
    }
  } else {
    const fresh = {
      ...settings,
      project_id,
      disabled,
      log_contents: null,
      created_at: secondsOf(parts),
      deleted_at: null,
    }
    const audit = { ...auditOf(parts, 'project.create', project_id, project_id) }
    const names = [name, `${name} (imported)`, `${name} (${project_id})`].map((one) => one.slice(0, 100))
    for (const one of names) {
      if (await projects.add({ ...fresh, name: one } as StoredProject, { ...audit, after: { project_id, name: one } }))
        break
    }
    outcome = 'added'
  }
  await recordUsed({ id: project_id, token_id: '', project_id, used, labels: present?.labels }, parts, (change) =>
    projects.update(project_id, ({ labels }) => ({ labels: change(labels) })),
  )
  return { ...adopted, outcome }
}

async function adoptToken(given: AdoptedToken, parts: AdoptParts): Promise<Adopted> {
  const { token_id, project_id, hash, prefix, disabled, used } = given
  const { tokens } = parts.store
  const settings = settingsOf(given)
  const name = given.settings.name
  const adopted = { kind: 'token', name } as const
  const present = await tokens.find(token_id)
  let outcome: Outcome = 'same'
  if (present) {
    const fields = changesOf(present, { ...settings, project_id }, disabled)
    if (Object.keys(fields).length > 0) {
      await tokens.update(token_id, fields, (before, after) => ({
        ...auditOf(parts, 'token.update', token_id, project_id),
        before: shown(before),
        after: shown(after),
      }))
      outcome = 'changed'
    }
  } else {
    const other = await tokens.findByHash(hash)
    if (other) return { ...adopted, outcome: 'kept', why: `the token ${other.token_id} has this key` }
    const token: StoredToken = {
      ...(settings as AccountSettings),
      name,
      token_id,
      project_id,
      hash,
      prefix,
      previous_hash: null,
      previous_expires_at: null,
      disabled,
      created_at: secondsOf(parts),
      last_used_at: null,
    }
    await tokens.add(token, { ...auditOf(parts, 'token.create', token_id, project_id), after: shown(token) })
    outcome = 'added'
  }
  await recordUsed({ id: token_id, token_id, project_id, used, labels: present?.labels }, parts, (change) =>
    tokens.update(token_id, ({ labels }) => ({ labels: change(labels) })),
  )
  return { ...adopted, outcome }
}

const secondsOf = ({ now_ms }: AdoptParts): number => Math.floor(now_ms / 1000)

const shown = ({ hash: _, previous_hash: __, ...token }: StoredToken) => token

type Spent = { id: string; token_id: string; project_id: string | null; used: number; labels: Labels | undefined }
type Change = (labels: Labels) => Labels

/**
 * Records what was spent since the last import; all of it where the source has begun a new window. The sum is noted before its
 * entry is written, so that an import after one that was interrupted writes the same entry, which changes nothing if it is there.
 */
async function recordUsed(
  { used, labels = {}, ...account }: Spent,
  parts: AdoptParts,
  change: (change: Change) => Promise<unknown>,
): Promise<void> {
  let recorded = Number(labels[USED_LABEL] ?? 0)
  let windows = Number(labels[WINDOWS_LABEL] ?? 0)
  const end = async (sum: number): Promise<void> => {
    const isNew = sum < recorded
    if (isNew) windows++
    await parts.store.ledger.append([entryOf(account, { from: recorded, to: sum, windows }, parts)])
    await change(({ [NEXT_LABEL]: _, ...rest }) => ({
      ...rest,
      [USED_LABEL]: String(sum),
      ...(windows > 0 && { [WINDOWS_LABEL]: String(windows) }),
    }))
    recorded = sum
  }
  const interrupted = Number(labels[NEXT_LABEL] ?? 0)
  if (interrupted > 0) await end(interrupted)
  if (used === recorded || used <= 0) return
  await change((present) => ({ ...present, [NEXT_LABEL]: String(used) }))
  await end(used)
}

function entryOf(
  { id, token_id, project_id }: Omit<Spent, 'used' | 'labels'>,
  { from, to, windows }: { from: number; to: number; windows: number },
  { now_ms }: AdoptParts,
): LedgerEntry {
  const amount = toNano(to >= from ? to - from : to)
  return {
    entry_id: `import:${id}:${toNano(from)}:${toNano(to)}${windows > 0 ? `:${windows}` : ''}`,
    kind: 'adjustment',
    at_ms: now_ms,
    call_id: 'import',
    token_id,
    project_id,
    end_user: null,
    family: '',
    model: '',
    provider: '',
    upstream_model: '',
    units: NO_UNITS,
    requests: 0,
    errors: 0,
    estimated: 0,
    amount,
    cost: amount,
    price: null,
  }
}
