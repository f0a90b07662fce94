/** One token: what it has used, what is left of its limits, and its acts: edit, rotate, revoke. */
import { useState } from 'react'
import { useAct, useApi, useMe } from '../../api/hooks.ts'
import type { IssuedToken, Token } from '../../api/types.ts'
import { familyName } from '../../lib/families.ts'
import { mayManage } from '../../shell/page.ts'
import { useRouteParams } from '../../ui/address.ts'
import { A, Button } from '../../ui/button.tsx'
import { Card, CopyableId, Facts, Nothing } from '../../ui/display.tsx'
import { useNow } from '../../ui/now.ts'
import { Loaded } from '../../ui/states.tsx'
import { TimeRangeSelect } from '../../ui/time-range.tsx'
import { Time } from '../../ui/values.tsx'
import { AccountHead } from './account-head.tsx'
import { isEnded } from './account-state.tsx'
import { endUserText, labelLines } from './draft.ts'
import { EditAccount } from './edit-account.tsx'
import { useFirstModel } from './first-model.ts'
import { BudgetBars, RateLimitBars } from './limit-bars.tsx'
import { useProjects } from './projects-data.ts'
import { RevokeToken, RotateToken } from './token-acts.tsx'
import { useTokenList } from './token-list.ts'
import { TokenSecret } from './token-secret.tsx'
import { UsageSummary } from './usage-summary.tsx'

type Open = 'edit' | 'rotate' | 'revoke' | undefined

export function TokenPage() {
  const { token_id = '' } = useRouteParams()
  const token = useApi('GET /admin/v1/tokens/{token_id}', { params: { token_id } })
  return (
    <Loaded query={token} lines={10}>
      {(data) => <TokenDetails key={token_id} token={data} />}
    </Loaded>
  )
}

function TokenDetails({ token }: { token: Token }) {
  const me = useMe()
  const now = useNow()
  const { list, kept } = useTokenList()
  const [open, setOpen] = useState<Open>()
  const [issued, setIssued] = useState<IssuedToken>()
  const model = useFirstModel(issued)
  const { nameOf } = useProjects()
  const mayChange = mayManage(me, token.project_id) && !token.declared && !token.disabled
  const update = useAct('PATCH /admin/v1/tokens/{token_id}', {
    changes: ['GET /admin/v1/tokens'],
    done: 'Token changed',
    onDone: () => setOpen(undefined),
    showsError: true,
  })
  const params = { token_id: token.token_id }
  return (
    <>
      <AccountHead
        kind="token"
        account={token}
        id={token.token_id}
        ids={list.rows.map((row) => row.token_id)}
        list={list}
        kept={kept}
        acts={
          mayChange && (
            <>
              <Button icon="edit" onClick={() => setOpen('edit')}>
                Edit
              </Button>
              {token.playground === undefined && (
                <Button icon="refresh" onClick={() => setOpen('rotate')}>
                  Rotate
                </Button>
              )}
              <Button kind="danger" icon="trash" onClick={() => setOpen('revoke')}>
                Revoke
              </Button>
            </>
          )
        }
      />
      <div className="stack">
        <Card title="Use" acts={<TimeRangeSelect fallback="7d" />}>
          <UsageSummary filter={{ token: token.token_id, ...(token.project_id && { project: token.project_id }) }} />
        </Card>
        {!isEnded(token, now) && <Limits token_id={token.token_id} />}
        <Card title="Settings">
          <Facts
            rows={[
              ['Id', <CopyableId key="id" id={token.token_id} />],
              [
                'Secret starts with',
                <span key="prefix" className="mono">
                  {token.prefix}
                </span>,
              ],
              [
                'Project',
                token.project_id && (
                  <A key="project" to={`/projects/${token.project_id}`}>
                    {nameOf(token.project_id)}
                  </A>
                ),
              ],
              ['Person of the playground', token.playground],
              ['Models', token.models.join(', ') || <Nothing key="models" text="none" />],
              ['Kinds of calls', token.families?.map(familyName).join(', ') ?? <Nothing key="families" text="all" />],
              [
                'Guards',
                token.guards.join(', ') || <Nothing key="guards" text="only those of its models and project" />,
              ],
              ['Allowed addresses', token.allowed_addresses?.join(', ') ?? <Nothing key="addresses" text="any" />],
              ['Each end user', endUserText(token.end_users) || null],
              ['Labels', labelLines(token.labels).join(', ') || null],
              [
                'Last used',
                token.last_used_at === null ? (
                  <Nothing key="used" text="never" />
                ) : (
                  <Time key="used" at={token.last_used_at} />
                ),
              ],
              [
                'Expires',
                token.expires_at === null ? (
                  <Nothing key="expires" text="never" />
                ) : (
                  <Time key="expires" at={token.expires_at} />
                ),
              ],
              [
                'Former secret valid until',
                token.previous_expires_at === null ? undefined : <Time key="previous" at={token.previous_expires_at} />,
              ],
              ['Created', <Time key="created" at={token.created_at} />],
            ]}
          />
        </Card>
      </div>
      {open === 'edit' && (
        <EditAccount
          title={`Edit ${token.name}`}
          account={token}
          onClose={() => setOpen(undefined)}
          onSave={(body) => update.mutate({ params, project: token.project_id, body })}
          isBusy={update.isPending}
          error={update.error}
        />
      )}
      {open === 'rotate' && (
        <RotateToken
          token={token}
          onClose={() => setOpen(undefined)}
          onDone={(rotated) => {
            setOpen(undefined)
            setIssued(rotated)
          }}
        />
      )}
      {open === 'revoke' && <RevokeToken token={token} onClose={() => setOpen(undefined)} />}
      {issued && <TokenSecret issued={issued} model={model} onClose={() => setIssued(undefined)} />}
    </>
  )
}

const LIMITS_REFETCH_MS = 5_000

function Limits({ token_id }: { token_id: string }) {
  const limits = useApi(
    'GET /admin/v1/tokens/{token_id}/limits',
    { params: { token_id } },
    { refetch_ms: LIMITS_REFETCH_MS },
  )
  return (
    <Loaded query={limits}>
      {({ rate_limits, budgets, project, currency }) => (
        <div className="grid-wide">
          <Card title="Limits of the token">
            <RateLimitBars limits={rate_limits} />
            <BudgetBars budgets={budgets} currency={currency} />
          </Card>
          {project && (
            <Card title="Limits of its project">
              <RateLimitBars limits={project.rate_limits} />
              <BudgetBars budgets={project.budgets} currency={currency} />
            </Card>
          )}
        </div>
      )}
    </Loaded>
  )
}
