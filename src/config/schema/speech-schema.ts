/** The settings of a model that speaks. */
import Type from 'typebox'
import { SPEECH_FORMATS } from '../../spec/audio-request.ts'
import { integer, list, section } from '../../spec/fields.ts'

export const SpeechLimits = section(
  {
    characters: integer({ minimum: 1 }, 'Longest `input` in characters. Default 100,000.'),
    voices: list(Type.String({ pattern: '^\\S{1,200}$' }), { minItems: 1 }, 'Its voices. Default: any is forwarded.'),
    formats: list(
      Type.Enum([...SPEECH_FORMATS]),
      { minItems: 1 },
      'Values of `response_format`; without mp3, the first is the default. Default: any is forwarded.',
    ),
  },
  'What a model that speaks accepts.',
)
export type SpeechLimits = Type.Static<typeof SpeechLimits>
