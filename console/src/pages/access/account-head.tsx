/** The head of the page of a token or a project: its state, its requests, and the accounts beside it. */
import type { ReactNode } from 'react'
import { ButtonLink } from '../../ui/button.tsx'
import { Badge } from '../../ui/display.tsx'
import { ListNeighbors } from '../../ui/neighbors.tsx'
import { PageHead } from '../../ui/page-head.tsx'
import { type Account, AccountState } from './account-state.tsx'

type AccountHeadProps = {
  account: Account & { name: string }
  id: string
  /** As the filter of the request log is named. */
  kind: 'token' | 'project'
  /** The ids of the list from which it was opened, and the list. */
  ids: string[]
  list: Parameters<typeof ListNeighbors>[0]['list']
  kept: Record<string, string>
  acts: ReactNode
}

const KINDS = {
  token: { path: '/tokens', list: 'Tokens', ended: 'revoked' },
  project: { path: '/projects', list: 'Projects', ended: 'disabled' },
}

export function AccountHead({ account, id, kind, ids, list, kept, acts }: AccountHeadProps) {
  const { path, list: name, ended } = KINDS[kind]
  return (
    <PageHead
      title={account.name}
      crumbs={[{ to: path, label: name, search: kept }]}
      aside={
        <>
          <AccountState account={account} ended={ended} />
          {account.declared && <Badge>from the configuration file</Badge>}
        </>
      }
      acts={
        <>
          <ListNeighbors label={`${name} beside this one`} path={path} id={id} ids={ids} kept={kept} list={list} />
          <ButtonLink to="/requests" search={{ [kind]: id }}>
            Its requests
          </ButtonLink>
          {acts}
        </>
      }
    />
  )
}
