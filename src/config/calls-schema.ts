/** What applies to all calls, as the operator writes it. */
import Type from 'typebox'

export const CallsConfig = Type.Object(
  {
    finish_after_leave_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 600,
        description:
          'How long a whole response that has begun is still read after its client has left, so that the call is charged by its usage; 0: not at all. A call without a usage is charged the most that it can have cost. Default 30.',
      }),
    ),
  },
  { additionalProperties: false },
)
export type CallsConfig = Type.Static<typeof CallsConfig>
