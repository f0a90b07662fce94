/** Quotas without a limit, for tests of other things. */
import type { StorageQuota } from '../../src/accounts/storage-quota.ts'

export const NO_QUOTA: StorageQuota = {
  fits: async () => true,
  reserve: async () => () => {},
  hold: () => () => {},
  stored: () => {},
  freed: () => {},
  keep: (_token_id, _amount, work) => work(),
}
