/** The bar above every page: search, colours, and who is logged in. */
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../api/client.ts'
import { useMe } from '../api/hooks.ts'
import { chooseProject } from '../lib/project.ts'
import { chooseTheme, chosenTheme, type Theme } from '../lib/theme.ts'
import { notifyError } from '../lib/toasts.ts'
import { IconButton } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Menu } from '../ui/menu.tsx'
import { Drawer } from './navigation.tsx'

const ROLE_NAMES = {
  owner: 'Owner',
  operator: 'Operator',
  viewer: 'Viewer',
  project_admin: 'Project admin',
  project_member: 'Member',
}
const THEMES: [Theme, string][] = [
  ['system', 'As the system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
]

type BarProps = { onSearch(): void; isHelpOpen: boolean; onHelp(): void }

export function Bar({ onSearch, isHelpOpen, onHelp }: BarProps) {
  return (
    <header className="bar">
      <Drawer />
      <button type="button" className="bar-search" onClick={onSearch} aria-keyshortcuts="Control+K">
        <Icon name="search" />
        <span className="cut">Find a page, model or id</span>
        <kbd>{navigator.platform.startsWith('Mac') ? '⌘K' : 'Ctrl K'}</kbd>
      </button>
      <div className="bar-end">
        <IconButton icon="book" label="Help" aria-expanded={isHelpOpen} onClick={onHelp} />
        <ThemeMenu />
        <AccountMenu />
      </div>
    </header>
  )
}

function ThemeMenu() {
  const [theme, setTheme] = useState(chosenTheme())
  const choose = (chosen: Theme) => {
    chooseTheme(chosen)
    setTheme(chosen)
  }
  return (
    <Menu
      button={<IconButton icon={theme === 'dark' ? 'moon' : 'sun'} label="Colours" />}
      groups={[THEMES.map(([name, label]) => ({ label, isOn: name === theme, onClick: () => choose(name) }))]}
    />
  )
}

function AccountMenu() {
  const me = useMe()
  const client = useQueryClient()
  const logOut = async () => {
    try {
      await call('POST /admin/v1/logout', {})
      client.clear()
      location.assign('/console')
    } catch (error) {
      notifyError(error)
    }
  }
  if (!me) return null
  const act = (project_id: string) => {
    chooseProject(project_id)
    location.assign('/console')
  }
  const projects = me.memberships.map(({ project_id }) => ({
    label: `Act in ${project_id}`,
    isOn: project_id === me.project_id,
    onClick: () => act(project_id),
  }))
  const role = (ROLE_NAMES as Record<string, string>)[me.role] ?? me.role
  return (
    <Menu
      button={<IconButton icon="user" label={`Account: ${role}`} />}
      head={
        <div className="item-group">
          <div className="wrap">{me.actor}</div>
          <div>
            {role}
            {me.project_id && ` of ${me.project_id}`}
          </div>
        </div>
      }
      groups={[
        ...(projects.length > 1 ? [projects] : []),
        [
          { label: 'Manual', icon: 'book', onClick: () => window.open('/manual', '_blank', 'noopener') },
          { label: 'API reference', icon: 'external', onClick: () => window.open('/docs', '_blank', 'noopener') },
        ],
        [{ label: 'Log out', icon: 'out', onClick: () => void logOut() }],
      ]}
    />
  )
}
