/** The first steps with a new gateway; gone when all of them are done. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { send } from '../../api/client.ts'
import { invalidate, useApiAll, useApiList, useMe } from '../../api/hooks.ts'
import { useSummary } from '../../api/summary.ts'
import type { AdminModel } from '../../api/types.ts'
import { seesAll } from '../../shell/page.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Card } from '../../ui/display.tsx'
import { Icon } from '../../ui/icon.tsx'
import { useNow } from '../../ui/now.ts'

const DAY = 86_400
/** Calls before these days count as none. */
const DAYS = 90

/** `hasCalls`: whether there were any in the range of the page. */
export function FirstRun({ hasCalls }: { hasCalls: boolean }) {
  const me = useMe()
  const end = Math.ceil(useNow() / DAY) * DAY
  const isOwn = seesAll(me)
  const past = useSummary({ start: end - DAYS * DAY, end, step: 'day' }, { points: 'false' }, { enabled: !hasCalls })
  const providers = useApiAll('GET /admin/v1/providers', {}, { enabled: isOwn })
  const tokens = useApiList('GET /admin/v1/tokens', {}, { limit: 1 })
  const call = useFirstCall()

  const isCalled = hasCalls || (past.data?.total.calls ?? 0) > 0
  const isKnown = !tokens.isLoading && !providers.isLoading && (hasCalls || past.data !== undefined)
  const hasProvider = !isOwn || providers.rows.some(({ kind }) => kind !== 'sandbox')
  const hasToken = tokens.rows.length > 0
  // What was just done stays in view until the page is left.
  const isDone = hasProvider && hasToken && isCalled && call.isIdle
  if (!isKnown || isDone) return null
  return (
    <Card title="First steps">
      <ol className="steps">
        <Step
          isDone={hasProvider}
          title="Add a provider"
          acts={<ButtonLink to="/providers">Add a provider</ButtonLink>}
        >
          A vendor's key, and its models are found. Until then the built-in sandbox answers, without cost.
        </Step>
        <Step isDone={hasToken} title="Make a token" acts={<ButtonLink to="/tokens">Make a token</ButtonLink>}>
          Programs call the gateway with it. It can be limited to models, a budget and a rate.
        </Step>
        <Step
          isDone={isCalled || call.isSuccess}
          title="Make the first call"
          acts={
            <Button kind="primary" icon="play" onClick={() => call.mutate()} isBusy={call.isPending}>
              Make a call
            </Button>
          }
        >
          {call.data ? (
            <>
              <span className="mono">{call.data.model}</span> answered: “{call.data.text}”
            </>
          ) : call.error ? (
            <span className="field-error" role="alert">
              {call.error.message}
            </span>
          ) : (
            'Asks a model through this gateway, as you.'
          )}
        </Step>
      </ol>
    </Card>
  )
}

type StepProps = { isDone: boolean; title: string; acts: ReactNode; children: ReactNode }

function Step({ isDone, title, acts, children }: StepProps) {
  return (
    <li className="step" data-done={isDone ? '' : undefined}>
      <span className="step-mark">{isDone && <Icon name="check" />}</span>
      <div className="step-text">
        <h3>
          {title}
          {isDone && <span className="hidden-text"> (done)</span>}
        </h3>
        <p className="soft wrap">{children}</p>
      </div>
      {!isDone && <div>{acts}</div>}
    </li>
  )
}

type ModelIds = { data: { id: string; supported_endpoint_types: string[]; status: AdminModel['status'] }[] }
type Completion = { choices: { message: { content: string | null } }[] }

const SHOWN_CHARACTERS = 300

/** A call of the first model that chats, by the person of this session. */
function useFirstCall() {
  const client = useQueryClient()
  return useMutation({
    async mutationFn() {
      const { data } = (await (await send('GET /admin/v1/playground/v1/models')).json()) as ModelIds
      const chatting = data.filter(
        (one) => one.supported_endpoint_types.includes('chatcompat') && one.status === 'active',
      )
      const model = (chatting.find(({ id }) => id === 'sandbox/general') ?? chatting[0])?.id
      if (!model) throw new Error('There is no model that chats yet: add a provider first.')
      const body = { model, messages: [{ role: 'user', content: 'What is a gatehouse? Answer in one sentence.' }] }
      const response = await send('POST /admin/v1/playground/v1/chat/completions', { body })
      const { choices } = (await response.json()) as Completion
      return { model, text: (choices[0]?.message.content ?? '').slice(0, SHOWN_CHARACTERS) }
    },
    onSuccess: () => invalidate(client, 'GET /admin/v1/summary'),
  })
}
