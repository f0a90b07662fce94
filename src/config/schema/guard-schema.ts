/** Guards: checks of what goes to models and comes from them. */
import Type from 'typebox'
import { flag, integer, list, mapping, number, oneOf, optional, required, section, text } from '../../spec/fields.ts'
import { mark } from '../../spec/marks.ts'

const GUARD_KINDS = ['patterns', 'redact', 'limits', 'schema', 'moderation', 'classifier', 'webhook'] as const

/** Kinds that ask a model or a service, which may fail or be late. */
export const QUESTION_KINDS = ['moderation', 'classifier', 'webhook'] as const

/** Protocols of services, besides that of the gateway. */
const GUARD_FORMATS = ['presidio', 'azure_text', 'azure_shields', 'bedrock', 'lakera'] as const
export type GuardFormat = (typeof GUARD_FORMATS)[number]

/** The languages that the detector knows (ISO 639-1). */
// biome-ignore format: a list
export const LANGUAGES = [
  'am', 'ar', 'az', 'be', 'bg', 'bn', 'ca', 'cs', 'da', 'de', 'el', 'en', 'es', 'et', 'eu', 'fa', 'fi', 'fr', 'gu', 'he', 'hi', 'hr', 'hu', 'hy', 'is', 'it', 'ja', 'ka', 'kn', 'ko',
  'ku', 'lo', 'lt', 'lv', 'ml', 'mr', 'ms', 'nl', 'no', 'or', 'pa', 'pl', 'pt', 'ro', 'ru', 'sk', 'sl', 'sq', 'sr', 'sv', 'ta', 'te', 'th', 'tl', 'tr', 'uk', 'ur', 'vi', 'yo', 'zh',
] as const

/** What is checked: requests, or answers. */
const GUARD_SIDES = ['input', 'output'] as const
export type GuardSide = (typeof GUARD_SIDES)[number]

/** Rules that are built in, one by one; `secrets` and `personal_data` are several of them. */
export const PERSONAL_DATA = [
  'email',
  'phone',
  'card',
  'iban',
  'us_ssn',
  'br_cpf',
  'de_tax_id',
  'es_dni',
  'fr_nir',
  'it_codice_fiscale',
  'nl_bsn',
  'pl_pesel',
  'se_personnummer',
] as const
export type PersonalData = (typeof PERSONAL_DATA)[number]
const RULE_SETS = ['secrets', 'personal_data', ...PERSONAL_DATA] as const
export type RuleSetName = (typeof RULE_SETS)[number]

const names = (description: string, options = {}) =>
  list(Type.String({ minLength: 1 }), { ...options, minItems: 1, maxItems: 100 }, description)

/** Whose calls a guard checks besides those of the models that name it. */
const GuardConditions = section(
  {
    projects: names('Of these projects, by id or by their name in `projects`.', mark.shown),
    tokens: names('Of these tokens, by id or by their name in `api_tokens`.'),
    models: names('At these models, as glob patterns.', mark.shown),
    tags: names('With each of these tags in x-gatehouse-tags.', mark.shown),
  },
  'Calls that it checks besides those of models that name it: all conditions must hold; `{}`: all.',
)

const texts = (description: string) =>
  list(Type.String({ minLength: 1, maxLength: 1000 }), { maxItems: 1000 }, description)

const AwsKey = section(
  {
    access_key_id: required({ ...mark.secret, minLength: 1 }, 'Its name.'),
    secret_access_key: required({ ...mark.secret, minLength: 1 }, 'Signs; it is not sent.'),
    session_token: text({ ...mark.secret, minLength: 1 }, 'Of temporary credentials.'),
    region: required({ ...mark.shown, minLength: 1 }, 'Such as eu-central-1.'),
  },
  'Of the format bedrock, instead of `key`: credentials that sign requests (SigV4).',
)

export const GuardConfig = section({
  kind: Type.Enum([...GUARD_KINDS], {
    description:
      'patterns: blocks or replaces matches; redact: puts placeholders for personal data; limits: blocks long texts, other languages and links; schema: blocks answers of chat that do not fit a JSON Schema; moderation, classifier, webhook: ask a moderation model, a chat model, a service.',
  }),
  on: list(
    Type.Enum([...GUARD_SIDES]),
    { minItems: 1 },
    'input: requests; output: answers. Default: both; redact: input; schema: output.',
  ),
  when: optional(GuardConditions),
  order: integer({ minimum: -1000, maximum: 1000 }, 'Guards with a lower number run first. Default 0.'),
  mode: oneOf(['enforce', 'observe'], 'observe: only records what it would have done. Default enforce.'),
  patterns: texts('RE2; a match has at most 1,024 characters.'),
  words: texts('Found between word boundaries.'),
  case_sensitive: flag('Of `patterns` and `words`. Default false.'),
  sets: list(
    Type.Enum([...RULE_SETS]),
    { minItems: 1 },
    'Built-in rules; personal_data has all after it. Default of redact: personal_data.',
  ),
  allow: texts('Texts that are never a match, whatever their case.'),
  action: oneOf(['block', 'replace'], 'Of patterns and the format presidio, for a match. Default block.'),
  replacement: text({ maxLength: 100 }, 'What `replace` puts in its place. Default [removed].'),
  restore: flag('Of redact: puts the values back into answers. Default false.'),
  max_characters: integer({ minimum: 1, maximum: 100_000_000 }, 'Of limits: of all texts of a request or an answer.'),
  languages: list(
    Type.String({ minLength: 2, maxLength: 2 }),
    { ...mark.shown, minItems: 1, uniqueItems: true },
    'Of limits: blocks texts in other languages (ISO 639-1).',
  ),
  link_hosts: list(
    Type.String({ minLength: 1, maxLength: 253 }),
    { ...mark.shown, maxItems: 1000 },
    'Of limits: hosts that links may have, as glob patterns.',
  ),
  schema: mapping(
    Type.Unknown(),
    'Of schema: the JSON Schema, whose patterns are in RE2 syntax and whose references are its own.',
  ),
  repair: flag('Of schema: the model is asked once more where its answer does not fit. Default false.'),
  model: text({ ...mark.shown, minLength: 1 }, 'Of moderation and classifier: the model that is asked.'),
  categories: names(
    'Which ones block: of moderation (default: what it flags), of classifier (default: all), of the formats presidio and azure_text.',
    mark.shown,
  ),
  threshold: number(
    { minimum: 0, maximum: 1 },
    'Of moderation and the format presidio: the score from which one blocks; of classifier (0.5): the answered number.',
  ),
  instructions: text({ maxLength: 20_000 }, 'Of classifier: its system prompt. Default: none.'),
  unsafe: names('Of classifier: how an answer begins that blocks. Default [unsafe, yes, true].'),
  url: text({ ...mark.origin, ...mark.secret, minLength: 1, maxLength: 2000 }, 'Of webhook: where texts are posted.'),
  format: oneOf([...GUARD_FORMATS], 'Of webhook: the protocol of the service. Default: that of the gateway.'),
  key: text({ ...mark.secret, minLength: 1 }, 'Of a format: the key of the service.'),
  aws: optional(AwsKey),
  project: text({ ...mark.shown, minLength: 1 }, 'Of the format lakera: the project whose policy decides.'),
  language: text({ ...mark.shown, minLength: 2, maxLength: 20 }, 'Of the format presidio. Default en.'),
  severity: integer({ minimum: 1, maximum: 7 }, 'Of the format azure_text: from which it blocks. Default 4.'),
  secret: text(
    { ...mark.secret, minLength: 1 },
    'Of webhook: `whsec_` and base64; signs requests by Standard Webhooks.',
  ),
  on_error: oneOf(['open', 'closed'], 'Without a decision: closed blocks, open passes. Default closed.'),
  timeout_ms: integer(
    { minimum: 50, maximum: 60_000 },
    'How long it waits for a decision, 5000, or for a repaired answer, 60000.',
  ),
})
export type GuardConfig = Type.Static<typeof GuardConfig>

export const Guards = mapping(GuardConfig, 'Checks of requests and answers, by name.')

export const guardNames = (description: string) =>
  list(Type.String({ minLength: 1 }), { ...mark.shown, maxItems: 32, uniqueItems: true }, description)
