/** The configuration file in an editor: checked, compared with what is in force, and applied. Secrets are masks, which stay. */
import { useState } from 'react'
import { useAct, useApi } from '../../api/hooks.ts'
import type { ConfigurationText, ConfigurationValidation, ConfigurationVersionText } from '../../api/types.ts'
import { text as inAddress } from '../../lib/search.ts'
import { useAddress } from '../../ui/address.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Badge, Card } from '../../ui/display.tsx'
import { FormError } from '../../ui/field.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Time } from '../../ui/values.tsx'
import { ChangeList } from './change-list.tsx'
import { CodeArea } from './code-area.tsx'
import type { Schema } from './completion.ts'

const CRUMBS = [{ to: '/config', label: 'Configuration' }]

export function EditorPage() {
  const file = useApi('GET /admin/v1/config/text', {})
  const [{ version }, change] = useAddress({ version: inAddress() })
  const params = { version_id: version }
  const earlier = useApi('GET /admin/v1/config/history/{version_id}', { params }, { enabled: version !== '' })
  const parts = { reload: () => void file.refetch(), onLeave: () => change({ version: '' }) }
  return (
    <>
      <PageHead
        title="Edit the configuration"
        crumbs={CRUMBS}
        note="Values that may be secrets are shown as masks (***1). A mask that stays keeps its value."
        acts={<ButtonLink to="/config/history">Earlier configurations</ButtonLink>}
      />
      <Loaded query={file} lines={12}>
        {(data) =>
          version === '' ? (
            <Editor key="present" file={data} {...parts} />
          ) : (
            <Loaded query={earlier} lines={12}>
              {(restored) => (
                <>
                  <p className="soft config-restored">
                    The text of <Time at={restored.at} />. Nothing changes before you apply it.
                    {data.text === null && ' The present file is not valid: write secrets (***99999) anew.'}
                  </p>
                  <Editor key={version} file={data} restored={restored} {...parts} />
                </>
              )}
            </Loaded>
          )
        }
      </Loaded>
    </>
  )
}

type EditorProps = {
  file: ConfigurationText
  /** An earlier configuration to begin with. */
  restored?: ConfigurationVersionText
  /** Reads the file again. */
  reload(): void
  /** Leaves the earlier configuration for the present file. */
  onLeave(): void
}

/** The draft stays when the file changes meanwhile; `base` is the file that it was made of. */
function Editor({ file, restored, reload, onLeave }: EditorProps) {
  const [base, setBase] = useState({ text: file.text ?? '', version: restored?.base ?? file.version })
  const [text, setText] = useState(restored?.text ?? base.text)
  const [isAsking, setAsking] = useState(false)
  const hasText = file.text !== null || text !== ''
  const schema = useApi('GET /admin/v1/config/schema', {}, { enabled: hasText })
  const check = useAct('POST /admin/v1/config/validate', { showsError: true })
  const compare = useAct('POST /admin/v1/config/diff', { showsError: true })
  const renumber = useAct('POST /admin/v1/config/text', { showsError: true })
  const apply = useAct('POST /admin/v1/config/apply', {
    changes: ['GET /admin/v1/config', 'GET /admin/v1/providers', 'GET /admin/v1/models'],
    isLate: true,
    done: ({ needs_restart }) =>
      needs_restart.length === 0 ? 'The configuration is in force' : 'Applied; some settings wait for the next start',
    onDone() {
      setAsking(false)
      check.reset()
      compare.reset()
      if (restored) onLeave()
    },
    showsError: true,
  })
  const edit = (changed: string) => {
    setText(changed)
    renumber.reset()
    check.reset()
    compare.reset()
    apply.reset()
  }
  const isChanged = text !== base.text
  const isFileOther = file.version !== base.version
  const present = { text: file.text ?? '', version: file.version }
  const take = () => {
    setBase(present)
    edit(present.text)
  }
  if (isFileOther && (!isChanged || apply.isSuccess)) {
    setBase(present)
    setText(present.text)
  }
  /** Compared only where it is valid. */
  const review = async (body: { text: string; base: string }) => {
    compare.reset()
    apply.reset()
    try {
      const { valid } = await check.mutateAsync({ body })
      if (valid) await compare.mutateAsync({ body })
    } catch {
      // The page shows it; the file may be another one by now.
      reload()
    }
  }
  /** The masks of the draft have the numbers of another file. */
  const rebase = async () => {
    try {
      const renumbered = await renumber.mutateAsync({ body: { text } })
      setText(renumbered.text ?? text)
      setBase({ text: present.text, version: renumbered.version })
      await review({ text: renumbered.text ?? text, base: renumbered.version })
    } catch {
      // The page shows it.
    }
  }
  if (file.text === null && !isChanged)
    return (
      <Empty
        icon="config"
        title="There is no file to edit"
        acts={<ButtonLink to="/config/history">Restore an earlier configuration</ButtonLink>}
      >
        The gateway runs without a configuration file, or the file cannot be read or is not valid YAML: {file.file}
      </Empty>
    )
  return (
    <div className="stack">
      {isFileOther && isChanged && (
        <div className="config-changed" role="alert">
          <span>The file has changed since you began to edit it. Your text is still here.</span>
          <div className="row">
            <Button size="small" onClick={() => void rebase()} isBusy={renumber.isPending || check.isPending}>
              Compare with the new file
            </Button>
            {file.text !== null && (
              <Button size="small" onClick={restored ? onLeave : take}>
                Discard mine and take the new file
              </Button>
            )}
          </div>
        </div>
      )}
      <CodeArea label={file.file} value={text} schema={schema.data as Schema | undefined} onChange={edit} />
      <FormError error={renumber.error ?? check.error ?? compare.error ?? (isAsking ? null : apply.error)} />
      <div className="row">
        <Button
          kind="primary"
          onClick={() => void review({ text, base: base.version })}
          isBusy={check.isPending || compare.isPending}
          disabled={!isChanged}
        >
          Check and compare
        </Button>
        <Button onClick={restored ? onLeave : take} disabled={!isChanged}>
          Discard
        </Button>
      </div>
      {check.data && !check.data.valid && <Problems problems={check.data.problems} />}
      {compare.data && (
        <Card
          title="What would change"
          isFlush
          acts={
            <Button kind="primary" onClick={() => setAsking(true)} disabled={compare.data.changes.length === 0}>
              Apply
            </Button>
          }
        >
          <ChangeList changes={compare.data.changes} />
        </Card>
      )}
      {isAsking && compare.data && (
        <ConfirmDialog
          open
          onClose={() => setAsking(false)}
          title="Apply this configuration?"
          act="Apply it"
          isBusy={apply.isPending}
          onConfirm={() => apply.mutate({ body: { text, base: base.version } }, { onError: reload })}
        >
          <p>
            {compare.data.changes.length} settings change in every process. The file is written with a backup beside it.
          </p>
          {compare.data.needs_restart.length > 0 && (
            <p>Only at the next start: {compare.data.needs_restart.join(', ')}.</p>
          )}
          {compare.data.emptied.length > 0 && <p>Would be empty: {compare.data.emptied.join(', ')}.</p>}
          <FormError error={apply.error} />
        </ConfirmDialog>
      )}
    </div>
  )
}

const Problems = ({ problems }: Pick<ConfigurationValidation, 'problems'>) => (
  <Card title="The file is not valid">
    <ul className="config-problems" role="alert">
      {problems.map(({ line, column, path, message }) => (
        <li key={`${line} ${column} ${path} ${message}`} className="row">
          {line !== null && <Badge tone="danger">line {line}</Badge>}
          <span>
            {path && <span className="mono">{path}</span>} {message}
          </span>
        </li>
      ))}
    </ul>
  </Card>
)
