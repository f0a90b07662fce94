/** The admin API's drafts: a new provider, or one more key of one, is tested with what was typed, compared, and written. */
import { access, constants, realpath } from 'node:fs/promises'
import { dirname } from 'node:path'
import Type from 'typebox'
import type { Config } from '../../config/config.ts'
import type { ProviderDraft } from '../../config/edit/provider-draft.ts'
import type { ConfigSource } from '../../config/edit/source.ts'
import { readTextFile } from '../../config/load/load.ts'
import { KINDS, type KindRow, PROVIDER_KINDS } from '../../config/schema/provider-kinds.ts'
import { type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { PROVIDER_REPORT, type ProviderReport } from '../../providers/ask-provider.ts'
import { PRESETS } from '../../providers/presets.ts'
import type { DiscoveredModel } from '../../providers/provider.ts'
import { EndpointFamily } from '../../spec/endpoint-family.ts'
import { type ErrorCode, GatewayError, invalidValue } from '../../spec/error.ts'
import { closedObject, flag, list, orNull, titled } from '../../spec/fields.ts'
import { MAX_TEXT, versionOf } from '../config-history.ts'
import { Applied, ProposalFields, refusedAction } from './config.ts'
import { type ApplyParts, changedFile, configApply, withProblems } from './config-apply.ts'
import { adminRoute } from './route.ts'

type ProviderDraftParts = BodyParts &
  ApplyParts & {
    source: Pick<ConfigSource, 'load'>
    configByApi(): Config['admin']['config_by_api']
    hasVariable(name: string): boolean
    /** The file of the configuration in force; undefined: there is none. */
    configFile(): string | undefined
    /** Asks the provider of this configuration, with the named one of its keys, for its list of models. */
    testDraft(
      id: string,
      draft: { config: Config; key: string | undefined; onModels(models: DiscoveredModel[]): void },
    ): Promise<ProviderReport>
  }

/** Loaded with the first draft, so that a start does not load the parser of YAML. */
const editing = () =>
  require('../../config/edit/provider-draft.ts') as typeof import('../../config/edit/provider-draft.ts')

const closed = { additionalProperties: false } as const
const text = (description: string, maxLength = 2_048) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }))
const KEY = 'The API key, or a reference such as `${ACME_KEY}` or `${file:/run/secrets/acme}`. It is never returned.'
const Draft = closedObject('ProviderDraft', {
  id: Type.String({ minLength: 1, maxLength: 128, description: 'The id of the provider.' }),
  settings: Type.Optional(
    Type.Object(
      {
        preset: text('A known provider.', 64),
        kind: text('The API that it has.', 64),
        base_url: text('Its base URL.'),
        key: text(KEY, 8_192),
        key_file: text('A file with only the API key.'),
        headers: Type.Optional(
          Type.Record(Type.String(), Type.String({ maxLength: 8_192 }), { description: 'Sent with every request.' }),
        ),
        discover: flag('Offer all models of its list.'),
      },
      { ...closed, description: 'Of a provider that the file does not have yet.' },
    ),
  ),
  new_key: Type.Optional(
    Type.Object(
      {
        name: Type.String({ minLength: 1, maxLength: 64, description: 'The name of the key.' }),
        key: text(KEY, 8_192),
        key_file: text('A file with only the API key.'),
      },
      { ...closed, description: 'One more key of a provider of the file; instead of `settings`.' },
    ),
  ),
  models: list(
    Type.Object(
      {
        model: Type.String({ minLength: 1, maxLength: 512, description: 'Its name at the provider.' }),
        families: Type.Optional(Type.Array(EndpointFamily)),
      },
      closed,
    ),
    { maxItems: 5_000 },
    'Models of a new provider to offer.',
  ),
  base: Type.Optional(
    Type.String({ description: 'The `version` that the comparison returned: another file is not overwritten.' }),
  ),
})

/** More than any vendor lists. */
const MOST_MODELS = 5_000
const DraftTest = titled('ProviderDraftTest', {
  ...PROVIDER_REPORT,
  list: Type.Array(Type.Object({ model: Type.String(), families: Type.Optional(Type.Array(EndpointFamily)) }), {
    description: `The models that it lists and the gateway can serve, at most ${MOST_MODELS}.`,
  }),
  list_is_cut: Type.Boolean({ description: 'It lists more.' }),
})
const DraftDifference = titled('ProviderDraftDifference', {
  ...ProposalFields,
  yaml: Type.String({ description: 'What to write by hand; literal keys are `***`.' }),
  version: Type.String({ description: 'Of the present file; to be sent as `base`.' }),
  file: orNull(Type.String({ description: 'null: the gateway runs without a file.' })),
  reason: orNull(Type.String({ description: 'Why the gateway cannot write it; null: it can.' })),
})
const Preset = Type.Object({
  id: Type.String(),
  kind: Type.String(),
  base_url: Type.String(),
  variables: Type.Array(Type.String(), { description: 'With its key; empty: it needs none.' }),
  has_variable: Type.Boolean({ description: 'One of them is set for this gateway.' }),
})
const Kind = Type.Object({ id: Type.String(), calls: Type.String(), variables: Type.Array(Type.String()) })
const Presets = titled('ProviderPresets', {
  object: Type.Literal('provider_presets'),
  presets: Type.Array(Preset),
  kinds: Type.Array(Kind),
})

type GivenDraft = Type.Static<typeof Draft>
const ROOT = '/admin/v1/provider-drafts'

export function providerDraftRoutes(parts: ProviderDraftParts): Route[] {
  const { source, configByApi, configFile, hasVariable, testDraft } = parts
  const readDraft = bodyReader(Draft, parts)
  const apply = configApply(parts)

  async function read(context: Context) {
    const given = await readDraft(context)
    if ((given.settings === undefined) === (given.new_key === undefined)) {
      throw invalidValue('settings', 'A draft has either "settings" or "new_key".')
    }
    const present = configFile() === undefined ? undefined : readTextFile(source.path)
    const version = versionOf(present)
    if (given.base !== undefined && given.base !== version) throw changedFile()
    // Before it is edited, which takes seconds with a text of some megabytes.
    assertShort((given.models ?? []).reduce((sum, { model }) => sum + model.length, present?.length ?? 0))
    const { draft, edited } = editedBy(given, present ?? '')
    assertShort(edited.length)
    return { draft, edited, version }
  }

  function editedBy({ base: _, ...given }: GivenDraft, present: string) {
    const draft: ProviderDraft = { ...given, variable: variableOf(given.id, present) }
    try {
      return { draft, edited: editing().withDraft(present, draft) }
    } catch (error) {
      throw new GatewayError(
        'invalid_value',
        `The configuration cannot be edited so: ${(error as Error).message.replace(/\.$/, '')}.`,
        {
          param: 'id',
          cause: error,
        },
      )
    }
  }

  /** The variable from which a provider of the file without a key takes its own. */
  function variableOf(id: string, present: string): string | undefined {
    const { preset = id, kind } = editing().providerOf(present, id)
    const row: KindRow | undefined = kind === undefined ? undefined : KINDS[kind as keyof typeof KINDS]
    const named = Object.hasOwn(PRESETS, preset) ? PRESETS[preset]?.key_env : undefined
    return [...(named ?? []), ...(row?.environment ?? [])].find(hasVariable)
  }

  async function unwritable(): Promise<string | null> {
    const allowed = configByApi()
    if (allowed !== 'apply') return refusedAction(allowed, 'apply')
    if (configFile() === undefined) return NO_FILE
    try {
      await access(dirname(await realpath(source.path)), constants.W_OK)
      return null
    } catch {
      return `The directory of ${source.path} is not the gateway's to write.`
    }
  }

  async function test(context: Context): Promise<Response> {
    assertMayValidate()
    const { draft, edited } = await read(context)
    const config = await withProblems(() => source.load(editing().providerText(edited, draft.id)))
    let list: DiscoveredModel[] = []
    const onModels = (models: DiscoveredModel[]) => {
      list = models
    }
    const report = await testDraft(draft.id, { config, key: draft.new_key?.name, onModels })
    const shown = list.slice(0, MOST_MODELS).map(({ model, families }) => ({ model, ...(families && { families }) }))
    return Response.json({ ...report, list: shown, list_is_cut: list.length > MOST_MODELS })
  }

  /** Also a test takes settings by the API. */
  function assertMayValidate(): void {
    if (configByApi() === 'off') throw new GatewayError('permission_denied', refusedAction('off', 'validate'))
  }

  async function compare(context: Context): Promise<Response> {
    const { draft, edited, version } = await read(context)
    const proposal =
      configByApi() === 'off'
        ? { changes: [], needs_restart: [], emptied: [] }
        : await withProblems(() => source.check(edited))
    const yaml = editing().shownDraft(edited, draft)
    return Response.json({ ...proposal, yaml, version, file: configFile() ?? null, reason: await unwritable() })
  }

  async function write(context: Context): Promise<Response> {
    const reason = await unwritable()
    if (reason === NO_FILE) throw new GatewayError('invalid_value', reason)
    if (reason !== null) throw new GatewayError('permission_denied', reason)
    const { edited, version } = await read(context)
    return Response.json(await withProblems(() => apply(edited, context, version)))
  }

  const errors: ErrorCode[] = ['permission_denied', 'precondition_failed']
  const example = { id: 'acme', settings: { base_url: 'http://127.0.0.1:8000/v1', key: 'sk-...' } }
  return [
    adminRoute(['GET', '/admin/v1/provider-presets', 'read'], {
      summary: 'List the providers and APIs that the gateway knows',
      description:
        'Each preset with its address and the variables of its key, and each kind with the API that it calls.',
      response: Presets,
      handle: () => Response.json({ object: 'provider_presets', presets: presets(hasVariable), kinds: kinds() }),
    }),
    adminRoute(['POST', `${ROOT}/test`, 'own'], {
      summary: 'Test a provider before it is written',
      description:
        'Asks it for its list of models with the given settings, which costs nothing and changes nothing. Takes 10 seconds at most. What a configuration by the admin API may not have is refused here too.',
      request: Draft,
      response: DraftTest,
      errors,
      example,
      handle: test,
    }),
    adminRoute(['POST', `${ROOT}/diff`, 'own'], {
      summary: 'Compare the configuration with one that has the provider',
      description: 'What would differ, what to write by hand, and whether the gateway can write it.',
      request: Draft,
      response: DraftDifference,
      errors,
      example,
      handle: compare,
    }),
    adminRoute(['POST', `${ROOT}/apply`, 'own'], {
      summary: 'Write a provider into the configuration',
      description: 'As `POST /admin/v1/config/apply` does with the whole text: the rest of the file stays as it is.',
      request: Draft,
      response: Applied,
      errors,
      example,
      handle: write,
    }),
  ]
}

/** Of the text that would be written. */
function assertShort(characters: number): void {
  if (characters <= MAX_TEXT) return
  const problem = `The configuration would have more than the ${MAX_TEXT} characters that the admin API accepts: add fewer models, or change the file itself.`
  throw invalidValue('models', problem)
}

const NO_FILE =
  'The gateway runs without a configuration file: write this into gatehouse.yaml in its working directory, with discover: true to keep the providers that it has found by itself.'

const presets = (hasVariable: (name: string) => boolean) =>
  Object.entries(PRESETS).map(([id, { kind = 'chatcompat', base_url, key_env }]) => ({
    id,
    kind,
    base_url,
    variables: key_env,
    has_variable: key_env.some(hasVariable),
  }))

const kinds = () =>
  PROVIDER_KINDS.filter((id) => id !== 'sandbox').map((id) => {
    const { calls, environment = [] }: KindRow = KINDS[id]
    return { id, calls, variables: environment }
  })
