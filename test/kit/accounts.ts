/** Tokens and projects as the store has them, with nothing set. */
import type { StoredProject, StoredToken } from '../../src/store/tokens/account-store.ts'

const NOTHING_SET = {
  labels: {},
  models: ['*'],
  families: null,
  rate_limits: {},
  budgets: [],
  end_users: {},
  allowed_addresses: null,
  guards: [],
  expires_at: null,
  disabled: false,
}

export const storedToken = (change: Partial<StoredToken> = {}): StoredToken => ({
  token_id: 'tok_a',
  project_id: null,
  name: 'a',
  prefix: 'sk-abcdef',
  hash: 'hash of a',
  previous_hash: null,
  previous_expires_at: null,
  ...NOTHING_SET,
  created_at: 1_700_000_000,
  last_used_at: null,
  ...change,
})

export const storedProject = (change: Partial<StoredProject> = {}): StoredProject => ({
  project_id: 'proj_a',
  name: 'team a',
  ...NOTHING_SET,
  created_at: 1_700_000_000,
  deleted_at: null,
  log_contents: null,
  ...change,
})
