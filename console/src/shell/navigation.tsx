/** The navigation: at the side, or behind a button on narrow screens. */
import { Dialog } from '@base-ui/react/dialog'
import { useRouterState } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useMe } from '../api/hooks.ts'
import { A, IconButton } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Brand } from './brand.tsx'
import type { NavGroup, Page } from './page.ts'
import { usePages } from './registry.ts'

const GROUPS: NavGroup[] = ['Overview', 'Build', 'Observe', 'Access', 'Gateway']

export function Navigation() {
  const pages = useNavPages()
  const path = useRouterState({ select: ({ location }) => location.pathname })
  const current = currentOf(pages, path)
  return (
    <nav aria-label="Pages">
      {GROUPS.map((group) => {
        const members = pages.filter(({ nav }) => nav?.group === group)
        if (members.length === 0) return null
        return (
          <div key={group}>
            {group !== 'Overview' && <div className="nav-group">{group}</div>}
            <ul>
              {members.map((page) => (
                <li key={page.path}>
                  <A to={page.path} className="nav-link" aria-current={page === current ? 'page' : undefined}>
                    {page.nav && <Icon name={page.nav.icon} />}
                    {page.title}
                  </A>
                </li>
              ))}
            </ul>
          </div>
        )
      })}
    </nav>
  )
}

export function useNavPages(): Page[] {
  const me = useMe()
  return usePages().filter(({ nav, isFor }) => nav && (!isFor || (me && isFor(me))))
}

/** The page of the navigation to which an address belongs. */
function currentOf(pages: Page[], path: string): Page | undefined {
  const fitting = pages.filter((page) => path === page.path || path.startsWith(`${page.path}/`))
  return fitting.sort((a, b) => b.path.length - a.path.length)[0]
}

export function Side() {
  return (
    <div className="side">
      <A to="/">
        <Brand />
      </A>
      <Navigation />
    </div>
  )
}

/** On narrow screens. It closes when another page opens. */
export function Drawer() {
  const [isOpen, setOpen] = useState(false)
  const path = useRouterState({ select: ({ location }) => location.href })
  // biome-ignore lint/correctness/useExhaustiveDependencies: every change of the address closes it
  useEffect(() => setOpen(false), [path])
  return (
    <Dialog.Root open={isOpen} onOpenChange={setOpen}>
      <span className="bar-menu">
        <IconButton icon="menu" label="Open the navigation" onClick={() => setOpen(true)} />
      </span>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="drawer">
          <Dialog.Title className="hidden-text">Navigation</Dialog.Title>
          <Brand />
          <Navigation />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
