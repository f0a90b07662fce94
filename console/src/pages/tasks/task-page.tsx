/** One task: its states, its provider, what it has generated, and the delivery of its webhook. */
import type { ReactNode } from 'react'
import { useState } from 'react'
import { useApi, useMe } from '../../api/hooks.ts'
import type { AdminTaskDetail } from '../../api/types.ts'
import { isOwnPath } from '../../lib/foreign-address.ts'
import { ProjectLink, TokenLink } from '../../ui/account-link.tsx'
import { useRouteParams } from '../../ui/address.ts'
import { A, Button } from '../../ui/button.tsx'
import { Badge, Card, CopyableId, Facts, Meter } from '../../ui/display.tsx'
import { ListNeighbors } from '../../ui/neighbors.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Failed, Loaded, Loading } from '../../ui/states.tsx'
import { Bytes, Time } from '../../ui/values.tsx'
import { History } from './history.tsx'
import { addressOf, Player } from './outputs.tsx'
import { TaskActs } from './task-acts.tsx'
import { TaskState } from './task-cells.tsx'
import { useTaskList } from './task-list.ts'
import { deliveryOf, isEnded, kindOf, stepsOf } from './task-text.ts'

/** While it is in flight. */
const AGAIN_MILLISECONDS = 2_000

export function TaskPage() {
  const { task_id = '' } = useRouteParams()
  const { list, kept } = useTaskList()
  const [isEndedNow, setEnded] = useState(false)
  const task = useApi(
    'GET /admin/v1/tasks/{task_id}',
    { params: { task_id } },
    { refetch_ms: isEndedNow ? false : AGAIN_MILLISECONDS },
  )
  const { data } = task
  if (data && isEnded(data.status) !== isEndedNow) setEnded(isEnded(data.status))
  return (
    <>
      <PageHead
        title="Task"
        crumbs={[{ to: '/tasks', label: 'Tasks', search: kept }]}
        aside={data && <TaskState task={data} />}
        note={
          data && (
            <>
              {kindOf(data.family)} of <A to={`/models/${data.model}`}>{data.model}</A>, submitted{' '}
              <Time at={data.submit_time} isRelative />
            </>
          )
        }
        acts={
          <>
            <ListNeighbors
              label="Tasks beside this one"
              path="/tasks"
              id={task_id}
              ids={list.rows.map((row) => row.task_id)}
              kept={kept}
              list={list}
            />
            {data && <TaskActs task={data} />}
          </>
        }
      />
      <Loaded query={task} lines={10}>
        {(detail) => (
          <div className="stack">
            <States task={detail} />
            <Outputs task={detail} />
            <Delivery task={detail} />
            <History task={detail} />
            <Card title="Details">
              <div className="grid-wide">
                <Facts rows={identity(detail)} />
                <Facts rows={work(detail)} />
              </div>
            </Card>
          </div>
        )}
      </Loaded>
    </>
  )
}

function States({ task }: { task: AdminTaskDetail }) {
  const { status, progress, fail_code, fail_reason, late_outcome, cancel_requested_at } = task
  return (
    <Card title="States">
      <div className="stack-small">
        <ol className="task-steps">
          {stepsOf(task).map(({ label, at, state }) => (
            <li
              key={label}
              className="task-step"
              data-state={state}
              aria-current={state === 'now' ? 'step' : undefined}
            >
              <b>{label}</b>
              <span className="faint small">{at === null ? state === 'ahead' ? 'not yet' : '' : <Time at={at} />}</span>
            </li>
          ))}
        </ol>
        {!isEnded(status) && (
          <div className="row">
            <Meter label="Progress" value={progress} max={100} isProgress text={`${progress} %`} />
            <span className="soft">{progress} %</span>
          </div>
        )}
        {cancel_requested_at !== null && !isEnded(status) && (
          <p className="soft">
            It was asked to be canceled <Time at={cancel_requested_at} isRelative />, and ends at its next step.
          </p>
        )}
        {fail_code && (
          <p className="form-error">
            <b>{fail_code}</b> {fail_reason}
          </p>
        )}
        {late_outcome && (
          <p className="soft wrap">
            After its end, the provider reported {late_outcome.status === 'SUCCESS' ? 'a success' : 'a failure'} (
            <Time at={late_outcome.at} isRelative />
            ): {late_outcome.detail}
          </p>
        )}
      </div>
    </Card>
  )
}

function Outputs({ task }: { task: AdminTaskDetail }) {
  const { task_id, outputs, outputs_expire_at, family, status, files_to_copy } = task
  const canSee = useMe()?.rights.includes('contents') ?? false
  const [isShown, setShown] = useState(false)
  const links = useApi('GET /admin/v1/tasks/{task_id}/outputs', { params: { task_id } }, { enabled: isShown && canSee })
  if (outputs.length === 0)
    return status === 'SUCCESS' ? (
      <Card title="Outputs">
        <p className="soft">Its files have expired and were removed.</p>
      </Card>
    ) : files_to_copy > 0 ? (
      <Card title="Outputs">
        <p className="soft">The provider has finished; {files_to_copy} files are still to be copied.</p>
      </Card>
    ) : null
  return (
    <Card
      title="Outputs"
      acts={
        canSee && !isShown ? (
          <Button size="small" onClick={() => setShown(true)} title="Recorded in the audit log">
            Show outputs
          </Button>
        ) : undefined
      }
    >
      <div className="stack-small">
        <p className="soft">
          {outputs_expire_at === null ? (
            'They are kept.'
          ) : (
            <>
              They are removed <Time at={outputs_expire_at} isRelative />.
            </>
          )}{' '}
          {canSee && !isShown && 'Looking at them is recorded in the audit log.'}
        </p>
        {links.isLoading && <Loading lines={3} />}
        {links.error && <Failed error={links.error} onRetry={() => void links.refetch()} />}
        <ul className="task-outputs">
          {outputs.map(({ file, content_type, bytes }, index) => {
            const output = links.data?.outputs[index]
            const address = output && addressOf(output)
            return (
              <li key={file} className="stack-small">
                {output && <Player output={output} label={`${kindOf(family)} ${index + 1}`} />}
                <span className="row">
                  <span className="mono wrap">{file}</span>
                  <span className="faint">{content_type}</span>
                  {bytes !== null && <Bytes value={bytes} />}
                  {address && <OutputLink address={address} />}
                </span>
              </li>
            )
          })}
        </ul>
      </div>
    </Card>
  )
}

/** A link of the gateway says itself until when it works. */
function OutputLink({ address }: { address: string }) {
  const expires = Number(new URL(address, location.origin).searchParams.get('expires'))
  return (
    <>
      <a href={address} target="_blank" rel="noreferrer noopener">
        Open
      </a>
      {isOwnPath(address) && expires > 0 && (
        <span className="faint small">
          the link ends <Time at={expires} isRelative />
        </span>
      )}
    </>
  )
}

function Delivery({ task: { webhook } }: { task: AdminTaskDetail }) {
  if (!webhook) return null
  const { text, tone } = deliveryOf(webhook)
  const { url, webhook_id, attempts, delivered_at, last_status } = webhook
  return (
    <Card title="Webhook">
      <Facts
        rows={[
          ['State', badge(text, tone)],
          ['Delivered', delivered_at === null ? undefined : moment(delivered_at)],
          ['Attempts', attempts],
          ['Last status', last_status === null ? undefined : last_status === 0 ? 'no response' : last_status],
          ['Address', mono(url)],
          ['Webhook', link(`/webhooks/${webhook_id}`, 'each attempt')],
          ['Webhook id', copyable(webhook_id)],
        ]}
      />
    </Card>
  )
}

type Fact = [name: string, value: ReactNode]
const badge = (text: string, tone: 'ok' | 'warn' | 'danger' | 'info' | 'plain'): ReactNode => (
  <Badge tone={tone}>{text}</Badge>
)
const moment = (at: number | null): ReactNode => (at === null ? undefined : <Time at={at} />)
const mono = (text: string): ReactNode => <span className="mono wrap">{text}</span>
const copyable = (id: string): ReactNode => <CopyableId id={id} />
const link = (to: string, text: string): ReactNode => <A to={to}>{text}</A>

const identity = ({ task_id, token_id, project_id, end_user, model }: AdminTaskDetail): Fact[] => [
  ['Task id', copyable(task_id)],
  ['Model', link(`/models/${model}`, model)],
  ['Project', project_id === null ? null : <ProjectLink key="project" id={project_id} />],
  ['Token', <TokenLink key="token" id={token_id} />],
  ['End user', end_user],
]

const work = (task: AdminTaskDetail): Fact[] => {
  const { provider, upstream_model, operation_id, provider_key, tried, failures, next_step_ms, worker, deadline_at } =
    task
  return [
    ['Provider', provider || null],
    ["Provider's model", upstream_model || undefined],
    ["Provider's operation", operation_id === null ? undefined : copyable(operation_id)],
    ['Key', provider_key ?? undefined],
    ['Not accepted by', tried.length > 0 ? mono(tried.join(', ')) : undefined],
    ['Deadline', moment(deadline_at)],
    ['Next step', next_step_ms === null ? undefined : moment(next_step_ms / 1000)],
    ['Worker', worker ? mono(worker) : undefined],
    ['Failed steps', failures > 0 ? failures : undefined],
  ]
}
