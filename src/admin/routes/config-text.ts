/** The admin API's text of the configuration for an editor, and the configurations that were in force. */
import Type from 'typebox'
import { configJsonSchemaText } from '../../config/schema/json-schema.ts'
import { compressedPage } from '../../http/compressed-page.ts'
import type { Context, Route } from '../../http/context.ts'
import { orNull, titled } from '../../spec/fields.ts'
import type { ConfigVersion, ConfigVersionStore } from '../../store/admin/config-version-store.ts'
import { masking, presentText } from '../config-history.ts'
import { noSuch } from './edit.ts'
import { listAnswer, listRoute, readPage } from './list.ts'
import { adminRoute } from './route.ts'
import { SettingChangeSchema } from './settings-schema.ts'

type ConfigTextParts = { configVersions: Pick<ConfigVersionStore, 'page' | 'find'>; source: { path: string } }

const MASKS =
  'What may be a secret is a mask such as `***1`; references such as `${ACME_KEY}` and comments are as in the file.'
export const ConfigText = titled('ConfigurationText', {
  file: Type.String(),
  text: orNull(Type.String(), 'null: there is no file, or it is not valid YAML.'),
  version: Type.String({ description: 'Of the file; to be sent as `base` with the edited text.' }),
})
const VersionFields = {
  object: Type.Literal('config.version'),
  version_id: Type.String(),
  at: Type.Integer({ description: 'When it came into force, in unix seconds.' }),
  actor: Type.String({ description: 'Who applied it; `gateway`: it was read at a start, or the file was changed.' }),
  file: Type.String(),
  version: Type.String({ description: 'Of the text, as of the present one.' }),
  changes: Type.Array(SettingChangeSchema, { description: 'What differs from the one before.' }),
}
const Version = titled('ConfigurationVersion', VersionFields)
const VersionText = titled('ConfigurationVersionText', {
  ...VersionFields,
  text: Type.String({ description: 'With masks.' }),
  base: Type.String({
    description: 'The `version` of the present file, whose masks these are: to be sent with the text.',
  }),
})

export function configTextRoutes({ configVersions, source }: ConfigTextParts): Route[] {
  async function list(context: Context): Promise<Response> {
    const { rows, next } = await configVersions.page(readPage(context.query()))
    return listAnswer(rows.map(view), next)
  }

  async function show({ params: { version_id = '' } }: Context): Promise<Response> {
    const version = await configVersions.find(version_id)
    if (!version) throw noSuch('configuration', version_id)
    const { masked, version: base } = presentText(source.path)
    const text = base === version.hash ? version.text : masking().renumberMasks(version.text, masked?.values ?? [])
    return Response.json({ ...view(version), text, base })
  }

  const schema = compressedPage(configJsonSchemaText, 'application/json')
  return [
    adminRoute(['GET', '/admin/v1/config/schema', 'read'], {
      summary: 'The JSON schema of the configuration file',
      description: 'Draft 7, of this version of the gateway: for editors, which complete and check by it.',
      response: Type.Object({}, { additionalProperties: true, title: 'ConfigurationSchema' }),
      handle: (context) => schema(context.header('accept-encoding')),
    }),
    adminRoute(['GET', '/admin/v1/config/text', 'own'], {
      summary: 'The text of the configuration file',
      description: `For an editor. ${MASKS}`,
      response: ConfigText,
      handle() {
        const { text = null, version } = presentText(source.path)
        return Response.json({ file: source.path, text, version })
      },
    }),
    listRoute(['GET', '/admin/v1/config/history', 'read'], {
      summary: 'List configurations that were in force',
      description: 'Of this gateway and others on its database, newest first. The newest 200 are kept.',
      of: [Version, 'ConfigurationVersionList'],
      errors: ['storage_unavailable'],
      handle: list,
    }),
    adminRoute(['GET', '/admin/v1/config/history/:version_id', 'own'], {
      summary: 'A configuration that was in force',
      description: `With its text. ${MASKS} The mask of a secret that is not in the present file is \`***99999\`.`,
      params: { version_id: 'The id of a configuration of the history.' },
      response: VersionText,
      errors: ['storage_unavailable'],
      handle: show,
    }),
  ]
}

const view = ({ version_id, at_ms, actor, file, hash, changes }: Omit<ConfigVersion, 'text'>) => ({
  object: 'config.version' as const,
  version_id,
  at: Math.floor(at_ms / 1000),
  actor,
  file,
  version: hash,
  changes,
})
