import { expect, test } from 'bun:test'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { adoptAccounts } from './adopt.ts'

const BY = { actor: 'cli:test' }
const token = (used: number) => ({
  token_id: 'tok_0123456789abcdef',
  project_id: null,
  hash: 'a'.repeat(64),
  prefix: 'sk-',
  mayRotate: false,
  settings: { name: 'app', labels: {}, budgets: [{ amount: 100, window: 'month' as const }] },
  disabled: false,
  used,
})

/** A store in which this statement fails, as one does whose process is killed before it. */
type Broken = (store: Store) => Pick<Store, 'tokens' | 'projects' | 'ledger'>
const failing = () => Promise.reject(new Error('killed'))
const atAppend: Broken = ({ tokens, projects, ledger }) => ({
  tokens,
  projects,
  ledger: { ...ledger, append: failing },
})
const atLabel =
  (number: number): Broken =>
  ({ tokens, projects, ledger }) => {
    let count = 0
    const update: typeof tokens.update = (...order) => (++count === number ? failing() : tokens.update(...order))
    return { tokens: { ...tokens, update }, projects, ledger }
  }

const spent = async ({ ledger }: Store) =>
  (await ledger.ofCall('import')).reduce((sum, { amount }) => sum + Number(amount), 0) / 1e9

test.each([
  ['before the sum is noted', atLabel(1)],
  ['before the entry', atAppend],
  ['before the sum is noted as recorded', atLabel(2)],
])('what was spent counts once, whichever import was interrupted %s', async (_, broken) => {
  await using store = Object.assign(await openStore({ url: 'sqlite::memory:' }), {
    async [Symbol.asyncDispose]() {
      await store.close()
    },
  })
  const adopt = (used: number, parts: Pick<Store, 'tokens' | 'projects' | 'ledger'> = store) =>
    adoptAccounts({ projects: [], tokens: [token(used)] }, { store: parts, now_ms: 1_000_000, by: BY })
  await expect(adopt(5, broken(store))).rejects.toThrow('killed')
  await expect(adopt(8, broken(store))).rejects.toThrow('killed')
  await adopt(9)
  expect(await spent(store)).toBe(9)
  await adopt(9)
  await adopt(2) // its source has begun a new window
  await adopt(9)
  expect(await spent(store)).toBe(18)
})
