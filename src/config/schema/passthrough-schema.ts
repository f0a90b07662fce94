/** Paths of a provider that clients may call by name, below `/passthrough/<provider>`. */
import Type from 'typebox'
import { integer, list, number, optional, required, section, text } from '../../spec/fields.ts'
import { Prices } from './price-schema.ts'

export const PASSTHROUGH_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

const POINTER = '^(/([^~/]|~[01])*)+$'
const HEADER_NAME = '^[A-Za-z][A-Za-z0-9-]{0,63}$'
const ACCOUNT = { minItems: 1, maxItems: 1_000 }

/** The units that an answer may count. */
export const COUNTED_UNITS = [
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'input_audio_tokens',
  'output_audio_tokens',
  'images',
  'searches',
  'speech_characters',
  'audio_seconds',
  'video_seconds',
] as const
export type CountedUnit = (typeof COUNTED_UNITS)[number]

const pointer = () => text({ pattern: POINTER }, 'A JSON pointer.')
const most = () => number({ minimum: 0, maximum: 1_000_000_000 }, 'The most.')

const perUnit = <Member>(member: () => Member): Record<CountedUnit, Member> =>
  Object.fromEntries(COUNTED_UNITS.map((unit) => [unit, member()])) as Record<CountedUnit, Member>

export const PassthroughPath = section({
  path: required(
    { pattern: '^/[^\\s?#%\\\\]{1,500}$' },
    'Below the base URL, decoded: `*` is any part of one segment, `**` any number of segments.',
  ),
  methods: Type.Array(Type.Enum([...PASSTHROUGH_METHODS]), {
    minItems: 1,
    description: 'The methods that may be sent.',
  }),
  tokens: list(
    Type.String({ minLength: 1 }),
    ACCOUNT,
    'Ids of the tokens that may: tokens limited to models or families only so.',
  ),
  projects: list(Type.String({ minLength: 1 }), ACCOUNT, 'Ids of projects whose tokens may.'),
  prices: optional({ ...Prices, description: 'What a call is charged.' }),
  usage: optional(section(perUnit(pointer), 'Where the answer, or its last event, counts what was used.')),
  most: optional(section(perUnit(most), 'What limits and budgets hold until a call ends.')),
  request_headers: list(
    Type.String({ pattern: HEADER_NAME }),
    'Further headers of the client to forward; never credentials, cookies or those of a connection.',
  ),
  response_headers: list(Type.String({ pattern: HEADER_NAME }), 'Further headers of the answer to pass on.'),
  max_request_bytes: integer({ minimum: 0 }, 'Of a body. Default: server.max_body_bytes.'),
  max_response_bytes: integer({ minimum: 1 }, 'Of an answer, decompressed. Default 104857600 (100 MiB).'),
  max_seconds: number({ exclusiveMinimum: 0, maximum: 86_400 }, 'Of a whole call. Default 600.'),
})
export type PassthroughPath = Type.Static<typeof PassthroughPath>
