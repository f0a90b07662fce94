/** The configurations that were in force, the newest first, each with what it changed. */
import { useApi, useApiList } from '../../api/hooks.ts'
import type { ConfigurationVersion } from '../../api/types.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Card, Nothing } from '../../ui/display.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty, Failed, Loading } from '../../ui/states.tsx'
import { Time } from '../../ui/values.tsx'
import { ChangeList } from './change-list.tsx'

export function HistoryPage() {
  const versions = useApiList('GET /admin/v1/config/history', {}, { limit: 20 })
  const present = useApi('GET /admin/v1/config/text', {})
  const isOther = ({ file, version }: ConfigurationVersion) =>
    present.data !== undefined && present.data.file === file && present.data.version !== version
  return (
    <>
      <PageHead
        title="Earlier configurations"
        crumbs={[{ to: '/config', label: 'Configuration' }]}
        note="Each configuration that the gateway has read, with who applied it and what changed."
      />
      <div className="stack">
        {versions.isLoading && <Loading lines={6} />}
        {versions.error && <Failed error={versions.error} onRetry={versions.reload} />}
        {!versions.isLoading && !versions.error && versions.rows.length === 0 && (
          <Empty icon="config" title="No configuration is recorded yet">
            One is recorded when a gateway starts with a file, or applies another one.
          </Empty>
        )}
        {versions.rows.map((version) => (
          <Version key={version.version_id} version={version} canRestore={isOther(version)} />
        ))}
        {versions.hasMore && (
          <div>
            <Button onClick={versions.more} isBusy={versions.isLoadingMore}>
              Load more
            </Button>
          </div>
        )}
      </div>
    </>
  )
}

type VersionProps = { version: ConfigurationVersion; canRestore: boolean }

const Version = ({ version: { version_id, at, actor, changes }, canRestore }: VersionProps) => (
  <Card
    isFlush
    acts={
      canRestore && (
        <ButtonLink size="small" to="/config/edit" search={{ version: version_id }}>
          Restore in the editor
        </ButtonLink>
      )
    }
    title={
      <>
        <Time at={at} /> by {actor || <Nothing text="the gateway" />}
      </>
    }
  >
    <ChangeList changes={changes} />
  </Card>
)
