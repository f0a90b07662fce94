/** The list of API tokens, and the form that makes one. */
import { useState } from 'react'
import { useAct, useMe } from '../../api/hooks.ts'
import type { IssuedToken, Token } from '../../api/types.ts'
import { flag } from '../../lib/search.ts'
import { mayManage } from '../../shell/page.ts'
import { useAddress } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog, DialogActs } from '../../ui/dialog.tsx'
import { Badge, Nothing } from '../../ui/display.tsx'
import { FilterSelect, Filters, SearchField } from '../../ui/filters.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { Combobox } from '../../ui/select.tsx'
import { Empty } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Count, Money, Time } from '../../ui/values.tsx'
import { AccountFields } from './account-form.tsx'
import { AccountState } from './account-state.tsx'
import { type Draft, EMPTY, orderOf } from './draft.ts'
import { useFirstModel } from './first-model.ts'
import { projectOptions, useProjects } from './projects-data.ts'
import { type RecentUse, useRecentUse } from './recent-use.ts'
import { NO_FILTER, useTokenList } from './token-list.ts'
import { TokenSecret } from './token-secret.tsx'

export function TokensPage() {
  const me = useMe()
  const [{ add }, open] = useAddress({ add: flag() })
  const { filters, change, list: tokens, kept, isFiltered } = useTokenList()
  const { q, state, project, sort } = filters
  const { projects, nameOf } = useProjects()
  const useOf = useRecentUse()
  const mayCreate = mayManage(me, project || (me?.project_id ?? null))
  const create = mayCreate && (
    <Button kind="primary" icon="plus" onClick={() => open({ add: true })}>
      New token
    </Button>
  )
  return (
    <>
      <PageHead
        title="Tokens"
        note="The keys with which clients call the gateway. Refused calls are not counted."
        acts={create}
      />
      <div className="stack">
        <Filters onClear={isFiltered ? () => change(NO_FILTER) : undefined}>
          <SearchField label="Find a token" value={q} onChange={(value) => change({ q: value })} />
          <FilterSelect
            label="State"
            value={state === 'all' ? '' : state}
            options={[
              { value: 'active', label: 'active' },
              { value: 'ended', label: 'revoked or expired' },
            ]}
            onChange={(value) => change({ state: value === '' ? 'all' : (value as typeof state) })}
          />
          <FilterSelect
            label="Project"
            value={project}
            options={projectOptions(projects)}
            onChange={(value) => change({ project: value })}
          />
        </Filters>
        <Table
          label="Tokens"
          columns={columnsOf(nameOf, useOf)}
          rows={tokens.rows}
          keyOf={({ token_id }) => token_id}
          linkOf={({ token_id }) => ({ to: `/tokens/${token_id}`, search: kept })}
          sort={sort}
          onSort={(value) => change({ sort: value as typeof sort })}
          isLoading={tokens.isLoading}
          error={tokens.error}
          onRetry={tokens.reload}
          hasMore={tokens.hasMore}
          isLoadingMore={tokens.isLoadingMore}
          onMore={tokens.more}
          empty={
            isFiltered ? (
              <Empty icon="key" title="No token fits these filters">
                Clear the filters, or search for a part of its name or the start of its id.
              </Empty>
            ) : (
              <Empty icon="key" title="There is no token yet" acts={create || undefined}>
                A client needs one to call the gateway.
              </Empty>
            )
          }
        />
      </div>
      {add && mayCreate && <NewToken projectGiven={project} onClose={() => open({ add: false })} />}
    </>
  )
}

const columnsOf = (
  nameOf: (project_id: string | null) => string,
  useOf: (token_id: string) => RecentUse | undefined,
): Column<Token>[] => [
  { key: 'name', head: 'Name', cell: ({ name }) => <span className="cut">{name}</span> },
  {
    key: 'state',
    head: 'State',
    cell: (token) => (
      <span className="row">
        <AccountState account={token} ended="revoked" />
        {token.declared && <Badge>from the file</Badge>}
        {token.playground !== undefined && <Badge tone="info">playground</Badge>}
      </span>
    ),
  },
  { key: 'project', head: 'Project', cell: ({ project_id }) => (project_id ? nameOf(project_id) : <Nothing />) },
  { key: 'prefix', head: 'Starts with', cell: ({ prefix }) => <span className="mono">{prefix}</span> },
  {
    key: 'calls',
    head: 'Calls, 7 days',
    isNumber: true,
    cell: ({ token_id }) => {
      const use = useOf(token_id)
      return use && <Count value={use.requests} isShort />
    },
  },
  {
    key: 'charge',
    head: 'Charge, 7 days',
    isNumber: true,
    cell: ({ token_id }) => {
      const use = useOf(token_id)
      return use && <Money value={use.amount} />
    },
  },
  {
    key: 'last_used_at',
    head: 'Last used',
    cell: ({ last_used_at }) =>
      last_used_at === null ? <Nothing text="never" /> : <Time at={last_used_at} isRelative />,
  },
  {
    key: 'expires_at',
    head: 'Expires',
    cell: ({ expires_at }) => (expires_at === null ? <Nothing text="never" /> : <Time at={expires_at} isRelative />),
  },
  {
    key: 'created_at',
    head: 'Created',
    cell: ({ created_at }) => <Time at={created_at} isRelative />,
    isSortable: true,
  },
]

/** What is typed stays until the token is made or the form is closed, also over a new login. */
function NewToken({ projectGiven, onClose }: { projectGiven: string; onClose(): void }) {
  const [draft, setDraft] = useState<Draft>({ ...EMPTY, project_id: projectGiven })
  const [issued, setIssued] = useState<IssuedToken>()
  const { projects } = useProjects()
  const model = useFirstModel(issued)
  const create = useAct('POST /admin/v1/tokens', {
    changes: ['GET /admin/v1/tokens'],
    onDone: setIssued,
    showsError: true,
  })
  if (issued) return <TokenSecret issued={issued} model={model} onClose={onClose} />
  const { project_id } = draft
  return (
    <Dialog open onClose={onClose} title="New token" text="Only the name is needed.">
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          create.mutate({ body: { ...orderOf(draft), ...(project_id && { project_id }) } })
        }}
      >
        <AccountFields
          draft={draft}
          onChange={(fields) => setDraft((now) => ({ ...now, ...fields }))}
          error={create.error}
        >
          {projects.length > 0 && (
            <Combobox
              label="Project"
              help="Its limits, budgets and models apply too."
              placeholder="none"
              value={project_id}
              options={projectOptions(projects)}
              onChange={(value) => setDraft((now) => ({ ...now, project_id: value }))}
            />
          )}
        </AccountFields>
        <DialogActs>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={create.isPending}>
            Create token
          </Button>
        </DialogActs>
      </form>
    </Dialog>
  )
}
