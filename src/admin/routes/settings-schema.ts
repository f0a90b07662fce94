/** How the admin API shows settings of the configuration: masked, with where each comes from. */
import Type from 'typebox'
import type { Setting } from '../../config/edit/effective.ts'
import { integer, text, titled } from '../../spec/fields.ts'

/** The settings below a path; `[]`: all. */
export type SettingsOf = (path: readonly string[]) => Setting[]

export const SettingSchema = titled('Setting', {
  path: Type.String({ description: 'Such as `models."acme/v1.5".limits`.' }),
  value: Type.Unknown({
    description: '`***` where it may be a secret, the variable where it is taken from the environment.',
  }),
  source: Type.Object({
    from: Type.String({
      description:
        '`default`, `file`, `environment`, `command line`, or `earlier file` where the file has changed and was not applied.',
    }),
    file: Type.Optional(Type.String()),
    line: integer('From 1.'),
    name: text('Of the variable or the flag.'),
  }),
})

export const SettingChangeSchema = titled('SettingChange', {
  path: Type.String(),
  kind: Type.String({ description: '`added`, `removed` or `changed`.' }),
  before: Type.Unknown({ description: 'Masked like `after`; null: not set.' }),
  after: Type.Unknown(),
})
