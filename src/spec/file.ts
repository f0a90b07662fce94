/** Files of clients, in the form of the OpenAI API and in that of the Messages API. */
import Type from 'typebox'
import { idList, integer, optional, section, text, titled } from './fields.ts'

/** What clients upload files for. `batch_output` is what the gateway writes. */
export const FILE_PURPOSES = ['batch', 'user_data', 'vision'] as const

export type StoredPurpose = (typeof FILE_PURPOSES)[number] | 'batch_output'
export const STORED_PURPOSES: readonly StoredPurpose[] = [...FILE_PURPOSES, 'batch_output']

const HOUR_SECONDS = 3_600
const DAY_SECONDS = 86_400

/** As OpenAI and Anthropic bound them. */
const EXPIRY = { minimum: HOUR_SECONDS, maximum: 30 * DAY_SECONDS }
const MESSAGES_EXPIRY = { minimum: HOUR_SECONDS, maximum: 90 * DAY_SECONDS }

export const FileCreate = titled('FileCreate', {
  file: Type.String({ description: 'The file, with its name.' }),
  purpose: text(
    `${FILE_PURPOSES.map((purpose) => `\`${purpose}\``).join(', ')}. Required without \`anthropic-version\`, and not known with it.`,
  ),
  expires_after: optional(
    section(
      {
        anchor: Type.Enum(['created_at']),
        seconds: Type.Integer({ ...EXPIRY, description: 'From an hour to 30 days.' }),
      },
      'When the file is deleted. Default: as the gateway is configured.',
    ),
  ),
  expires_in_seconds: integer(MESSAGES_EXPIRY, 'The same for clients that send `anthropic-version`: up to 90 days.'),
})

export const FileObject = titled('File', {
  id: Type.String(),
  object: Type.Literal('file'),
  bytes: Type.Integer(),
  created_at: Type.Integer(),
  expires_at: Type.Optional(Type.Integer()),
  filename: Type.String(),
  purpose: Type.Enum([...STORED_PURPOSES]),
  status: Type.Enum(['processed', 'error'], { description: '`error`: a batch of this file would fail.' }),
  status_details: text('The first problems; not in lists.'),
})
export type FileObject = Type.Static<typeof FileObject>

export const FileList = idList('FileList', FileObject)
export type FileList = Type.Static<typeof FileList>

export const FileDeleted = titled('FileDeleted', {
  id: Type.String(),
  object: Type.Literal('file'),
  deleted: Type.Boolean(),
})
