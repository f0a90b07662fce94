/** One file: whose it is, its download for who may read contents, and its deletion. */
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { addressOf } from '../../api/client.ts'
import { useAct, useApi, useMe } from '../../api/hooks.ts'
import type { AdminFile } from '../../api/types.ts'
import { hasRight } from '../../shell/page.ts'
import { ProjectLink, TokenLink } from '../../ui/account-link.tsx'
import { useRouteParams } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Card, CopyableId, Facts, Nothing } from '../../ui/display.tsx'
import { Icon } from '../../ui/icon.tsx'
import { ListNeighbors } from '../../ui/neighbors.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Bytes, Time } from '../../ui/values.tsx'
import { PURPOSES, useFileList } from './file-list.ts'

export function FilePage() {
  const { file_id = '' } = useRouteParams()
  const me = useMe()
  const { list, kept } = useFileList()
  const file = useApi('GET /admin/v1/files/{file_id}', { params: { file_id } })
  return (
    <Loaded query={file} lines={6}>
      {(data) => (
        <>
          <PageHead
            title={data.filename}
            crumbs={[{ to: '/files', label: 'Files', search: kept }]}
            acts={
              <>
                <ListNeighbors
                  label="Files beside this one"
                  path="/files"
                  id={file_id}
                  ids={list.rows.map((row) => row.file_id)}
                  kept={kept}
                  list={list}
                />
                {hasRight(me, 'contents') && (
                  <a
                    className="button"
                    href={addressOf('/admin/v1/files/{file_id}/content', { file_id })}
                    download={data.filename}
                    title="Recorded in the audit log"
                  >
                    <Icon name="down" />
                    Download
                  </a>
                )}
                {hasRight(me, 'manage') && <DeleteButton file={data} />}
              </>
            }
          />
          <Card title="File">
            <Facts
              rows={[
                ['Id', <CopyableId key="id" id={data.file_id} />],
                ['Purpose', PURPOSES[data.purpose]],
                ['Type', data.content_type],
                ['Size', <Bytes key="bytes" value={data.bytes} />],
                ['Token', <TokenLink key="token" id={data.token_id} />],
                ['Project', data.project_id && <ProjectLink key="project" id={data.project_id} />],
                ['Stored', <Time key="created" at={data.created_at} />],
                [
                  'Kept until',
                  data.expires_at === null ? (
                    <Nothing key="never" text="it is deleted" />
                  ) : (
                    <Time key="expires" at={data.expires_at} />
                  ),
                ],
              ]}
            />
          </Card>
        </>
      )}
    </Loaded>
  )
}

function DeleteButton({ file: { file_id, filename, purpose } }: { file: AdminFile }) {
  const [isAsking, setAsking] = useState(false)
  const navigate = useNavigate()
  const remove = useAct('DELETE /admin/v1/files/{file_id}', {
    changes: ['GET /admin/v1/files$'],
    done: 'The file was deleted',
    onDone: () => void navigate({ to: '/files' }),
  })
  return (
    <>
      <Button icon="trash" onClick={() => setAsking(true)}>
        Delete
      </Button>
      <ConfirmDialog
        open={isAsking}
        onClose={() => setAsking(false)}
        title={`Delete ${filename}?`}
        act="Delete it"
        isBusy={remove.isPending}
        onConfirm={() => remove.mutate({ params: { file_id } })}
      >
        <p>
          {purpose === 'batch_output'
            ? 'Its owner cannot read these results any more.'
            : 'Requests, conversations and batches that name it fail from then on.'}{' '}
          This cannot be undone.
        </p>
      </ConfirmDialog>
    </>
  )
}
