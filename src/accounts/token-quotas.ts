/** The quotas of each token: stored responses, tasks, files and idempotency keys; and that of the files of each project. */
import { type Config, DEFAULT_STORAGE } from '../config/config.ts'
import type { StorageQuotas as Settings } from '../config/schema/account-schema.ts'
import { type Clock, unixSeconds } from '../kit/clock.ts'
import type { FileRowStore } from '../store/files/file-row.ts'
import type { StoredAmounts } from '../store/tokens/amount-store.ts'
import { createStorageQuota, type StorageQuota } from './storage-quota.ts'

export type StorageQuotas = {
  responses: StorageQuota
  tasks: StorageQuota
  keys: StorageQuota
  files: StorageQuota
  projectFiles: StorageQuota
}

type QuotasParts = {
  store: { amounts: StoredAmounts; files: Pick<FileRowStore, 'amount'> }
  /** Read at each use. The requests of tasks count for as long as finished files are kept. */
  config(): Pick<Config, 'tokens' | 'outputs' | 'files'>
  clock: Clock
}

const DAY_SECONDS = 86_400
const DELETE_FILES = 'Delete some, or wait until they expire.'

export function createStorageQuotas({ store, config, clock }: QuotasParts): StorageQuotas {
  const { amounts, files } = store
  const limit = (name: keyof Settings) => ({
    most: config().tokens.storage?.[name] ?? DEFAULT_STORAGE[name],
    setting: `tokens.storage.${name}`,
  })
  return {
    responses: createStorageQuota({
      read: amounts.responses,
      limits: () => ({ rows: limit('response_rows'), bytes: limit('response_bytes') }),
      texts: {
        stored: 'responses, conversations and items',
        remedy: 'Delete some, wait until they expire, or send "store": false.',
      },
      clock,
    }),
    tasks: createStorageQuota({
      read: (token_id) =>
        amounts.tasks(token_id, unixSeconds(clock) - Math.ceil(config().outputs.keep_days * DAY_SECONDS)),
      limits: () => ({ rows: limit('unfinished_tasks'), bytes: limit('task_bytes') }),
      texts: {
        stored: 'unfinished tasks, or requests of tasks',
        remedy: 'Wait for tasks to end or cancel them, and delete tasks that have ended.',
      },
      clock,
    }),
    files: createStorageQuota({
      read: (token_id) => files.amount({ token_id }),
      limits: () => ({ rows: limit('files'), bytes: limit('file_bytes') }),
      texts: { stored: 'files', remedy: DELETE_FILES },
      clock,
    }),
    projectFiles: createStorageQuota({
      read: (project_id) => files.amount({ project_id }),
      limits: () => ({
        rows: { most: config().files.project_files, setting: 'files.project_files' },
        bytes: { most: config().files.project_bytes, setting: 'files.project_bytes' },
      }),
      texts: { owner: 'project', stored: 'files', remedy: DELETE_FILES },
      clock,
    }),
    keys: createStorageQuota({
      read: amounts.keys,
      limits: () => ({ rows: limit('idempotency_keys') }),
      texts: { stored: 'idempotency keys', remedy: 'Wait until some are 24 hours old, or send no Idempotency-Key.' },
      clock,
    }),
  }
}
