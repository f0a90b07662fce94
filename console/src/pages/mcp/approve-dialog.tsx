/** Approves a tool of an MCP server: shows all of its definition, and of what has changed the difference. */
import { useAct } from '../../api/hooks.ts'
import type { McpTool } from '../../api/types.ts'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Diff } from '../../ui/diff.tsx'
import { Code } from '../../ui/display.tsx'

/** Characters that nobody sees are shown by their numbers: models read them. */
const shown = (value: unknown): string =>
  (typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value, null, 2)).replaceAll(
    /[^\P{C}\n\t]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  )

const FIRST = ['description', 'inputSchema', 'annotations']

export function ApproveDialog({ tool: approved, onClose }: { tool: McpTool; onClose(): void }) {
  const { server, tool, hash, changes } = approved
  const definition = { description: '', ...(approved.definition as Record<string, unknown> | null) }
  const members = new Map<string, unknown>(Object.entries(definition))
  const names = new Set([...FIRST, ...members.keys(), ...changes.map(({ member }) => member)])
  const approve = useAct('POST /admin/v1/mcp/tools/approve', {
    changes: ['GET /admin/v1/mcp/tools'],
    done: `${tool} is approved`,
    onDone: onClose,
  })
  return (
    <ConfirmDialog
      open
      size="large"
      onClose={onClose}
      title={`Approve ${tool} of ${server}?`}
      act="Approve it"
      isBusy={approve.isPending}
      onConfirm={() => approve.mutate({ body: { server, tool, hash } })}
    >
      <div className="stack-small">
        <p>Models read its definition, and clients can call it within seconds. Read what it says first.</p>
        {[...names].map((name) => {
          const change = changes.find(({ member }) => member === name)
          if (!change && (name === 'name' || !members.has(name))) return null
          return (
            <div key={name} className="stack-small">
              <strong>{change ? `${name}, as approved and as it is now` : name}</strong>
              {change ? (
                <Diff before={shown(change.before)} after={shown(change.after)} label={name} />
              ) : (
                <Code text={shown(members.get(name)) || 'none'} label={name} wraps />
              )}
            </div>
          )
        })}
      </div>
    </ConfirmDialog>
  )
}
