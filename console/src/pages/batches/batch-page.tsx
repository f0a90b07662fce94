/** One batch: its progress, its problems, its files and its requests, and its cancellation. */
import { useState } from 'react'
import { useAct, useApi, useMe } from '../../api/hooks.ts'
import type { AdminBatch } from '../../api/types.ts'
import { hasRight } from '../../shell/page.ts'
import { ProjectLink, TokenLink } from '../../ui/account-link.tsx'
import { useRouteParams } from '../../ui/address.ts'
import { A, Button, ButtonLink } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Card, CopyableId, Facts, Nothing, Stat, Stats } from '../../ui/display.tsx'
import { ListNeighbors } from '../../ui/neighbors.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Loaded } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Count, Time } from '../../ui/values.tsx'
import { BatchProgress, BatchState, isEnded, useBatchList } from './batch-list.tsx'

const AGAIN_MILLISECONDS = 3_000

type Problem = AdminBatch['problems'][number]
const PROBLEMS: Column<Problem>[] = [
  { key: 'line', head: 'Line', cell: ({ line }) => line ?? <Nothing text="all" />, isNumber: true },
  { key: 'code', head: 'Code', cell: ({ code }) => <span className="mono">{code}</span> },
  { key: 'message', head: 'Problem', cell: ({ message }) => <span className="wrap">{message}</span> },
]

export function BatchPage() {
  const { batch_id = '' } = useRouteParams()
  const { list, kept } = useBatchList()
  const params = { batch_id }
  const batch = useApi('GET /admin/v1/batches/{batch_id}', { params }, { refetch_ms: AGAIN_MILLISECONDS })
  return (
    <Loaded query={batch} lines={8}>
      {(data) => (
        <>
          <PageHead
            title="Batch"
            crumbs={[{ to: '/batches', label: 'Batches', search: kept }]}
            aside={<BatchState batch={data} />}
            acts={
              <>
                <ListNeighbors
                  label="Batches beside this one"
                  path="/batches"
                  id={batch_id}
                  ids={list.rows.map((row) => row.batch_id)}
                  kept={kept}
                  list={list}
                />
                <ButtonLink to="/requests" search={requestsOf(data)} icon="list">
                  Requests
                </ButtonLink>
                <CancelButton batch={data} />
              </>
            }
          />
          <BatchParts batch={data} />
        </>
      )}
    </Loaded>
  )
}

/** From its creation on: the log opens with the last hour otherwise. */
const requestsOf = ({ session, token_id, created_at, expires_at }: AdminBatch) => ({
  session,
  token: token_id,
  range: 'custom',
  from: String(created_at),
  to: String(expires_at),
})

function BatchParts({ batch }: { batch: AdminBatch }) {
  const { lines, waiting, problems, vendor_batches } = batch
  return (
    <div className="stack">
      {waiting && !isEnded(batch) && (
        <p role="status">
          {waiting.since_ms !== undefined && (
            <>
              Waiting since <Time at={waiting.since_ms / 1000} />.{' '}
            </>
          )}
          Nothing is executed until <Time at={waiting.until_ms / 1000} />: <span className="mono">{waiting.code}</span>,{' '}
          {waiting.message}
        </p>
      )}
      <Stats>
        <Stat label="Requests" value={<Count value={lines.total} />} />
        <Stat label="Succeeded" value={<Count value={lines.succeeded} />} />
        <Stat label="Errors" value={<Count value={lines.errored} />} />
        <Stat label="Canceled or expired" value={<Count value={lines.canceled + lines.expired} />} />
        <Stat label="Input tokens" value={<Count value={batch.input_tokens} isShort />} />
        <Stat label="Output tokens" value={<Count value={batch.output_tokens} isShort />} />
      </Stats>
      <Card title="Batch">
        <Facts
          rows={[
            ['Id', <CopyableId key="id" id={batch.batch_id} />],
            ['Progress', <BatchProgress key="progress" batch={batch} />],
            ['Path', batch.endpoint],
            [
              'Model',
              batch.model ? <ModelLink key="model" id={batch.model} /> : <Nothing key="model" text="several" />,
            ],
            ['Token', <TokenLink key="token" id={batch.token_id} />],
            ['Project', batch.project_id && <ProjectLink key="project" id={batch.project_id} />],
            ['Created', <Time key="created" at={batch.created_at} />],
            [
              isEnded(batch) ? 'Ended' : 'Ends at the latest',
              <Time key="ended" at={batch.ended_at ?? batch.expires_at} />,
            ],
            ['Input', <FileLink key="input" id={batch.input_file_id} none="sent with the batch" />],
            ['Results', <FileLink key="output" id={batch.output_file_id} />],
            ['Errors', <FileLink key="error" id={batch.error_file_id} />],
            [
              'At providers',
              vendor_batches
                .map(({ id, provider, lines: some }) => `${provider}: ${some} requests ${id ?? ''}`)
                .join('; ') || null,
            ],
          ]}
        />
      </Card>
      {problems.length > 0 && (
        <Card title="Problems" isFlush>
          <Table
            label="Problems"
            columns={PROBLEMS}
            rows={problems}
            keyOf={({ line, code, message }) => `${line} ${code} ${message}`}
          />
        </Card>
      )}
    </div>
  )
}

const ModelLink = ({ id }: { id: string }) => <A to={`/models/${id}`}>{id}</A>

const FileLink = ({ id, none = 'none' }: { id: string | null; none?: string }) =>
  id === null ? <Nothing text={none} /> : <A to={`/files/${id}`}>{id}</A>

function CancelButton({ batch }: { batch: AdminBatch }) {
  const mayOperate = hasRight(useMe(), 'operate')
  const [isAsking, setAsking] = useState(false)
  const cancel = useAct('POST /admin/v1/batches/{batch_id}/cancel', {
    changes: ['GET /admin/v1/batches'],
    done: 'The batch is being canceled',
    onDone: () => setAsking(false),
  })
  if (!mayOperate || isEnded(batch) || batch.status === 'cancelling') return null
  const { total, succeeded, errored, canceled, expired } = batch.lines
  return (
    <>
      <Button icon="stop" onClick={() => setAsking(true)}>
        Cancel batch
      </Button>
      <ConfirmDialog
        open={isAsking}
        onClose={() => setAsking(false)}
        title="Cancel this batch?"
        act="Cancel it"
        isBusy={cancel.isPending}
        onConfirm={() => cancel.mutate({ params: { batch_id: batch.batch_id } })}
      >
        <p>
          <Count value={total - succeeded - errored - canceled - expired} /> requests are not executed any more; what
          was executed stays, and is charged. This cannot be undone.
        </p>
      </ConfirmDialog>
    </>
  )
}
