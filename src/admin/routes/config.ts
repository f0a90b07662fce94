/** The admin API's configuration: shown with origins, and a proposed file validated, compared and applied. */
import Type from 'typebox'
import { ConfigError, placeName } from '../../config/check/problem.ts'
import type { Config } from '../../config/config.ts'
import type { ConfigSource } from '../../config/edit/source.ts'
import { type BodyParts, bodyReader } from '../../http/checked-body.ts'
import type { Context, Route } from '../../http/context.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import { closedObject, orNull, parameter, titled } from '../../spec/fields.ts'
import { MAX_TEXT, masking, presentText } from '../config-history.ts'
import { type ApplyParts, configApply, withProblems } from './config-apply.ts'
import { ConfigText } from './config-text.ts'
import { listAnswer, listRoute, readPage } from './list.ts'
import { adminRoute } from './route.ts'
import { SettingChangeSchema, SettingSchema, type SettingsOf } from './settings-schema.ts'

type ConfigRouteParts = BodyParts &
  ApplyParts & {
    source: Pick<ConfigSource, 'show' | 'load'>
    /** Which of the routes for a proposed file are open. */
    configByApi(): Config['admin']['config_by_api']
    settingsOf: SettingsOf
  }

const text = Type.String({ maxLength: MAX_TEXT, description: 'The whole text of the file, YAML.' })
const EditedText = closedObject('EditedConfiguration', { text })
const Text = closedObject('ProposedConfiguration', {
  text,
  base: Type.Optional(
    Type.String({
      description:
        'The `version` of the text that was edited, as `GET /admin/v1/config/text` returned it. Needed where the text has masks, such as `***1`: each becomes the value that it stands for, at the same place only.',
    }),
  ),
})

const Problem = Type.Object({
  line: orNull(Type.Integer()),
  column: orNull(Type.Integer()),
  path: Type.String(),
  message: Type.String(),
})

const Validation = titled('ConfigurationValidation', { valid: Type.Boolean(), problems: Type.Array(Problem) })

export const ProposalFields = {
  changes: Type.Array(SettingChangeSchema),
  needs_restart: Type.Array(Type.String(), { description: 'Changed settings that take effect at the next start.' }),
  emptied: Type.Array(Type.String(), {
    description: 'Sections that would be empty: a running gateway applies such a file only on SIGHUP.',
  }),
}
const ProposalSchema = titled('ConfigurationDifference', ProposalFields)
export const Applied = titled('AppliedConfiguration', {
  ...ProposalFields,
  file: Type.String(),
  written: Type.Boolean({ description: 'False: it had this text already.' }),
  backup: orNull(Type.String(), 'The file with the text before.'),
})

const ROOT = '/admin/v1/config'

/** The settings in use; where the file cannot be read now, those that are in force without their lines. */
export const createSettingsOf =
  (source: ConfigSource, running: () => Config): SettingsOf =>
  (path) => {
    const prefix = placeName(path)
    const isBelow = (setting: string) =>
      prefix === '' || setting === prefix || setting.startsWith(`${prefix}.`) || setting.startsWith(`${prefix}[`)
    return source.show(running()).filter((setting) => isBelow(setting.path))
  }

export function configRoutes({ source, configByApi, settingsOf, audit, history, ...parts }: ConfigRouteParts): Route[] {
  const apply = configApply({ source, audit, history })
  const readBody = bodyReader(Text, parts)
  const readEdited = bodyReader(EditedText, parts)

  /** Throws permission_denied where the configuration in force does not allow it. */
  async function read(context: Context, action: 'validate' | 'apply') {
    const allowed = configByApi()
    if (allowed === 'off' || (allowed === 'validate' && action === 'apply')) {
      throw new GatewayError('permission_denied', refusedAction(allowed, action))
    }
    const { text, base } = await readBody(context)
    return { text: withValues(text, base), base }
  }

  /** Throws precondition_failed where the file is another one than the masks are of. */
  function withValues(text: string, base: string | undefined): string {
    if (base === undefined && !masking().hasMasks(text)) return text
    const present = presentText(source.path)
    if (base !== present.version) {
      const problem =
        base === undefined
          ? 'The text has masks (***1): send as "base" the version of the text that they are from.'
          : 'The file was changed since you read its text: read it again, and edit that.'
      throw new GatewayError(base === undefined ? 'invalid_value' : 'precondition_failed', problem, { param: 'base' })
    }
    try {
      return masking().unmaskText(text, present.masked ?? { text: '', values: [] })
    } catch (error) {
      throw invalidValue('text', `text: ${(error as Error).message}.`)
    }
  }

  function list(context: Context): Response {
    const query = context.query()
    const { limit, after } = readPage(query)
    const [prefix, origin] = [query.get('path') ?? '', query.get('from')]
    const from = Number(after?.[0] ?? 0)
    const settings = settingsOf([]).filter(
      (setting) => setting.path.startsWith(prefix) && (origin === null || setting.source.from === origin),
    )
    const next = from + limit
    return listAnswer(settings.slice(from, next), next < settings.length ? [next] : undefined)
  }

  async function validate(context: Context): Promise<Response> {
    const { text } = await read(context, 'validate')
    try {
      await source.check(text)
      return Response.json({ valid: true, problems: [] })
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      const problems = error.problems.map(({ line = null, column = null, path, message }) => ({
        line,
        column,
        path,
        message,
      }))
      return Response.json({ valid: false, problems })
    }
  }

  async function rebase(context: Context): Promise<Response> {
    const { text } = await readEdited(context)
    const { masked, version } = presentText(source.path)
    if (!masking().maskText(text)) {
      throw invalidValue('text', 'The text is not valid YAML: its masks cannot be read.')
    }
    const renumbered = masking().renumberMasks(text, masked?.values ?? [])
    return Response.json({ file: source.path, text: renumbered, version })
  }

  /** Throws invalid_value with the first problems of the text. */
  async function proposed<Result>(
    context: Context,
    action: 'validate' | 'apply',
    make: (text: string, base: string | undefined) => Result | Promise<Result>,
  ): Promise<Result> {
    const { text, base } = await read(context, action)
    return withProblems(() => make(text, base))
  }

  return [
    listRoute(['GET', ROOT, 'read'], {
      summary: 'The configuration in use',
      description: 'Each setting with its value and where it comes from. What may be a secret is shown as `***`.',
      query: {
        path: parameter('Only settings that start so, such as `models.`.'),
        from: parameter('Only settings from there, such as `file` or `default`.'),
      },
      of: [SettingSchema, 'SettingList'],
      handle: list,
    }),
    adminRoute(['POST', `${ROOT}/text`, 'own'], {
      summary: 'Continue an edited text on the present file',
      description:
        'For a text whose file has changed since: each mask gets the number of the present value at its place, `***99999` where there is none.',
      request: EditedText,
      response: ConfigText,
      example: { text: 'sandbox: true\n' },
      handle: rebase,
    }),
    adminRoute(['POST', `${ROOT}/validate`, 'own'], {
      summary: 'Validate a configuration',
      description: `Every problem with its line and column; nothing is changed. ${LIMITED}`,
      request: Text,
      response: Validation,
      errors: ['permission_denied', 'precondition_failed'],
      example: { text: 'server: { port: 8787 }\n' },
      handle: validate,
    }),
    adminRoute(['POST', `${ROOT}/diff`, 'own'], {
      summary: 'Compare a configuration with the present file',
      description: `What differs, by setting. Values that may be secrets are masked on both sides. ${LIMITED}`,
      request: Text,
      response: ProposalSchema,
      errors: ['permission_denied', 'precondition_failed'],
      example: { text: 'sandbox: false\n' },
      handle: async (context) => Response.json(await proposed(context, 'validate', (text) => source.check(text))),
    }),
    adminRoute(['POST', `${ROOT}/apply`, 'own'], {
      summary: 'Replace the configuration file',
      description: `Validated first, written in one step where the file is the gateway’s to write, with a backup beside it; the gateway then reloads it by itself. The same text again changes nothing. ${LIMITED}`,
      request: Text,
      response: Applied,
      errors: ['permission_denied', 'precondition_failed'],
      example: { text: 'sandbox: true\n' },
      handle: async (context) =>
        Response.json(await proposed(context, 'apply', (text, base) => apply(text, context, base))),
    }),
  ]
}

const LIMITED =
  'New paths must be below the data directory, and new variables on the list `admin.config_variables` of the file on disk. `admin.config_by_api` can turn it off.'

export const refusedAction = (allowed: 'off' | 'validate', action: 'validate' | 'apply'): string =>
  allowed === 'off'
    ? 'This gateway takes no configuration by the admin API (admin.config_by_api: off); change the file itself.'
    : `This gateway validates a configuration by the admin API and does not ${action} it (admin.config_by_api: validate); change the file itself.`
