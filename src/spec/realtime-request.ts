/** Ephemeral client secrets of realtime sessions, in the shape of OpenAI's API. */
import Type from 'typebox'
import { optional, titled } from './fields.ts'

const SESSION = Type.Object(
  {
    type: optional(Type.Literal('realtime', { description: 'The kind of session.' })),
    model: Type.String({ minLength: 1, description: 'A model of the family `realtime`.' }),
  },
  {
    additionalProperties: true,
    description: 'The settings with which its sessions begin, as `session.update` has them.',
  },
)

export const ClientSecretRequest = titled('RealtimeClientSecretRequest', {
  session: SESSION,
  expires_after: optional(
    Type.Object(
      {
        anchor: optional(Type.Literal('created_at', { description: 'The only anchor.' })),
        seconds: optional(Type.Integer({ minimum: 10, maximum: 7_200, description: 'Default 600.' })),
      },
      { description: 'How long it opens sessions.' },
    ),
  ),
})

export const ClientSecretAnswer = titled('RealtimeClientSecret', {
  value: Type.String({ description: '`ek_` and more: what the client sends instead of a token.' }),
  expires_at: Type.Integer({ description: 'Unix seconds.' }),
  session: SESSION,
})
