/** Creates what generates and stores files: outputs, durable tasks, their webhooks, and images. */
import { join } from 'node:path'
import type { StorageQuota } from '../accounts/storage-quota.ts'
import type { StorageQuotas } from '../accounts/token-quotas.ts'
import type { Gate } from '../calls/call.ts'
import type { Pipeline } from '../calls/pipeline.ts'
import type { LiveOverrides } from '../calls/routing/live-overrides.ts'
import type { Router } from '../calls/routing/router.ts'
import type { Config, ServerSettings } from '../config/config.ts'
import { type Batches, batchEnd, createBatches } from '../families/batches/batches.ts'
import { createFileInputs, type FileInputs } from '../families/files/file-inputs.ts'
import { orderFiles } from '../families/files/file-references.ts'
import { createFiles, type FileSettings, type Files } from '../families/files/files.ts'
import { createImageFetch } from '../families/images/fetch-image.ts'
import type { StoreImages } from '../families/images/image-routes.ts'
import { createImages, type Images } from '../families/images/images.ts'
import type { Ending } from '../families/tasks/lifecycle.ts'
import { baseUrlOf } from '../families/tasks/routes/request-parameters.ts'
import type { TaskApiParts } from '../families/tasks/routes/task-api.ts'
import { createGeneratedFileStore } from '../families/tasks/store-generated.ts'
import { unknownOutcomeAlerts } from '../families/tasks/task-alerts.ts'
import { taskData } from '../families/tasks/task-response.ts'
import { createTaskTraces, type WorkTracer } from '../families/tasks/task-traces.ts'
import { createTasks, type Tasks } from '../families/tasks/tasks.ts'
import { webhookMasterSecret } from '../families/tasks/webhook-delivery.ts'
import { createWebhooks, type Webhooks } from '../families/tasks/webhooks.ts'
import type { Clock } from '../kit/clock.ts'
import type { GuardedFetch } from '../kit/guarded-fetch.ts'
import type { Log } from '../kit/log.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import type { Catalogue } from '../models/catalogue.ts'
import type { Supply } from '../models/supply.ts'
import type { Alerts } from '../observe/alerts/alerts.ts'
import type { LiveTask } from '../observe/requests/live-events.ts'
import { createOutputs } from '../outputs/create-outputs.ts'
import { openFileStore, outputDirectory } from '../outputs/file-store.ts'
import type { FileStore, Outputs } from '../outputs/outputs.ts'
import type { CallRoute } from '../protocols/shared/batch-exchange.ts'
import type { Media } from '../providers/media.ts'
import type { Caller } from '../spec/token.ts'
import type { Store } from '../store/store.ts'
import { followedTasks } from './followed-tasks.ts'
import type { Metering } from './metering.ts'
import type { GatewayParts } from './parts.ts'

type GenerationParts = {
  store: Store
  config(): Config
  /** Changed in place by a reload. */
  settings: ServerSettings
  pipeline: Pipeline
  quotas: StorageQuotas
  catalogue: Catalogue
  supply: Supply
  router: Router
  /** Rate limits of providers. */
  attemptLimits: Gate
  overrides: Pick<LiveOverrides, 'current'>
  media: Media
  guardedFetch: GuardedFetch
  alerts: Pick<Alerts, 'make' | 'note'>
  /** Undefined: no traces are recorded. */
  workTracer: WorkTracer | undefined
  metering: Pick<Metering, 'taskEnded' | 'fileStored'> | undefined
  clock: Clock
  /** The time by which several processes work on one store. */
  storeClock: Clock
  log: Log
  /** A task was added or has changed. */
  onTaskChanged(task: LiveTask): void
  crashHook: GatewayParts['crashHook'] | undefined
  /** Handles a request of the gateway's own as one of a caller. */
  callRoute: CallRoute
  callerOf(token_id: string): Promise<Caller | undefined>
}

/** The files of tokens. */
type FileRouteParts = {
  files: Files
  fileInputs: FileInputs
  quota: StorageQuota
  projectQuota: StorageQuota
  fileSettings(): FileSettings
}

export type Generation = {
  files: FileStore
  outputs: Outputs
  tasks: Tasks
  webhooks: Webhooks
  /** Removes a batch of the files that have expired; false: nothing is left. */
  sweepFiles(): Promise<boolean>
  batches: Batches
  routeParts: FileRouteParts & {
    images: Images
    storeImages: StoreImages
    realtimeSecret: string
    tasks: Tasks
    outputs: Outputs
    batches: Batches
    fileStore: FileStore
    withFiles: TaskApiParts['withFiles']
  }
}

export async function createGeneration(parts: GenerationParts): Promise<Generation> {
  const { store, config, settings, pipeline, quotas, catalogue, supply, router, media, guardedFetch, alerts } = parts
  const { overrides, workTracer, metering, clock, storeClock, log, crashHook } = parts
  const traces = workTracer && createTaskTraces(workTracer, storeClock)
  const files = openFileStore(config())
  const outputs = createOutputs({
    files,
    guardedFetch,
    secret: await store.secrets.get('links', () => randomAlphanumerics(48)),
    settings: () => config().outputs,
    files_base_url: () => settings.files_base_url,
    partial_directory: join(outputDirectory(config()), '.partial'),
    onStored: metering?.fileStored,
    clock,
    log,
  })
  const taskSettings = () => ({ ...config().tasks, keep_days: config().outputs.keep_days })
  const tasks = createTasks({
    store: { ...store, tasks: followedTasks(store.tasks, { onChanged: parts.onTaskChanged, clock: storeClock }) },
    pipeline,
    quotas,
    catalogue,
    outputs,
    providerOf(id, model, key) {
      const found = supply.withKey(id, model, key)
      const named = found && { provider: found.provider, model, ...(found.key === null ? {} : { key: found.key }) }
      // As if it were not configured: its tasks wait.
      return named && overrides.current().stateOf(named) === 'disabled' ? undefined : found
    },
    router,
    attemptLimits: parts.attemptLimits,
    onEnded: (task, ending, entry) => metering?.taskEnded({ ...task, ...endOf(ending) }, entry),
    alertsOf: (task, ending) => unknownOutcomeAlerts(alerts, task, ending),
    providerSettings(id, key = null) {
      const found = supply.settingsWithKey(id, key)
      return found && { ...found, first_byte_seconds: { ...config().timeouts, ...found.timeouts }.first_byte_seconds }
    },
    inputs: { checkInputs: media.check },
    settings: taskSettings,
    traces,
    clock: storeClock,
    log,
    ...(crashHook === undefined ? {} : { crashHook }),
  })
  const images = createImages({
    fetchImage: createImageFetch({ guardedFetch, providerSettings: (id) => supply.find(id)?.config }),
    clock,
  })
  const webhooks = createWebhooks({
    store,
    guardedFetch,
    master_secret: await webhookMasterSecret(store.secrets),
    async batchEnd(batch_id) {
      const batch = await store.batches.find(batch_id)
      return batch && batchEnd(batch)
    },
    describe: (task) => taskData(task, { outputs, base_url: baseUrlOf(settings) ?? task.base_url }),
    private_origins: () => config().tasks.callback_origins,
    traces,
    clock: storeClock,
    log,
  })
  const realtimeSecret = await store.secrets.get('realtime', () => randomAlphanumerics(48))
  const storeImages = createGeneratedFileStore({ store, outputs, settings: taskSettings, clock: storeClock })
  const filing = { quota: quotas.files, projectQuota: quotas.projectFiles }
  const fileSettings = () => config().files
  const tokenFiles = createFiles({
    ...filing,
    store: store.files,
    outputs: files,
    settings: fileSettings,
    onStored: metering?.fileStored,
    clock: storeClock,
    log,
  })
  const fileInputs = createFileInputs({ files: tokenFiles, max_bytes: () => settings.max_body_bytes })
  const batches = createBatches({
    store: store.batches,
    fileStore: files,
    files: tokenFiles,
    catalogue,
    call: parts.callRoute,
    callerOf: parts.callerOf,
    providerOf({ provider, key, model }) {
      const found = supply.withKey(provider, model, key)
      return found?.is_key_missing ? undefined : found?.provider
    },
    callback_origins: () => config().tasks.callback_origins ?? [],
    currency: () => config().ledger.currency,
    settings: () => config().batches,
    clock: storeClock,
    log,
    crashHook: crashHook ?? (() => {}),
  })
  const withFiles: TaskApiParts['withFiles'] = (body, client) => fileInputs.resolved(body, orderFiles, client)
  const served = { withFiles, images, storeImages, realtimeSecret, tasks, outputs, batches, fileStore: files }
  const routeParts = { ...filing, ...served, fileSettings, fileInputs, files: tokenFiles }
  return { files, outputs, tasks, webhooks, batches, sweepFiles: tokenFiles.sweep, routeParts }
}

const endOf = (ending: Ending) =>
  ({ status: ending.status, fail_code: ending.status === 'FAILURE' ? ending.fail_code : '' }) as const
