/** Projects: create, list, change, delete. `by`: who does it, for the audit log; absent: the gateway itself. */
import { type Clock, unixSeconds } from '../kit/clock.ts'
import { randomAlphanumerics } from '../kit/secret.ts'
import { type AuditOrigin, BY_GATEWAY } from '../spec/audit.ts'
import { invalidValue } from '../spec/error.ts'
import type { LogContents, Project } from '../spec/token.ts'
import type { StorePage } from '../store/page.ts'
import type { AccountPageOptions, ProjectStore, StoredProject } from '../store/tokens/account-store.ts'
import { accountEvent } from './account-event.ts'
import { noProjectFits } from './choose.ts'
import { assertNotDeclared, differing } from './declare-token.ts'
import { NOTHING_SET } from './issue.ts'
import { type AccountSettings, importLabels, readName, readSettings, withImportLabels } from './settings.ts'

type ProjectSettings = AccountSettings & { log_contents: LogContents | null }
type ProjectChange = Partial<ProjectSettings> & { disabled?: boolean }

export type Projects = {
  /** Throws invalid_value, naming the field. */
  create(order: Partial<ProjectSettings> & { name: string }, by?: AuditOrigin): Promise<Project>
  /** Oldest first, without deleted ones. */
  list(): Promise<Project[]>
  /** The project with this id; undefined where there is none, or where it was deleted. */
  find(project_id: string): Promise<Project | undefined>
  page(options: Omit<AccountPageOptions, 'now'>): Promise<StorePage<Project>>
  /** The project with this id or name. Throws invalid_value. */
  choose(which: string): Promise<Project>
  /**
   * Changes a project, to what a function makes of its present settings: no other change comes between. Its tokens obey
   * at once in this process, within a second in others. Throws invalid_value, naming the field.
   */
  update(
    which: string,
    change: ProjectChange | ((present: Project) => ProjectChange),
    by?: AuditOrigin,
  ): Promise<Project>
  /** For the configuration file: the project of this name is like this, and nobody else changes it. */
  declare(
    project: ProjectSettings & { disabled: boolean },
    by: AuditOrigin,
  ): Promise<{ project_id: string; isAdopted: boolean }>
  /** It stays as it is, and can be changed again. */
  undeclare(project_id: string, by: AuditOrigin): Promise<void>
  /** Its tokens are refused from now on. What it has used keeps its name; the name can be used again. `check`: throws to stop it. */
  delete(which: string, by?: AuditOrigin, check?: (present: Project) => void): Promise<Project>
}

type ProjectsParts = {
  store: ProjectStore
  clock: Clock
  /** Called after each change by this process. */
  onChange?(): void
}

export function createProjects({ store, clock, onChange = () => {} }: ProjectsParts): Projects {
  const now = () => unixSeconds(clock)

  async function choose(which: string): Promise<StoredProject> {
    const reference = which.trim()
    const found = (await store.find(reference)) ?? (await store.findNamed(reference))
    if (found && found.deleted_at === null) return found
    throw invalidValue('project', await noneFits(reference))
  }

  const noneFits = async (reference: string) => noProjectFits(await store.list(), reference)

  type Action = `project.${string}`
  type Changing = { fields: Parameters<ProjectStore['update']>[1]; action: Action; by: AuditOrigin | undefined }

  const eventOf = (by: AuditOrigin, action: Action, { project_id }: Project) =>
    accountEvent({ by, action, now_ms: clock.now() }, project_id, project_id)

  async function change(which: string, { fields, action, by = BY_GATEWAY }: Changing): Promise<Project> {
    const { project_id } = await choose(which)
    const changed = await store.update(project_id, fields, (before, after) => ({
      ...eventOf(by, action, after),
      before,
      after,
    }))
    if (changed === 'name_taken') throw nameTaken()
    if (changed === 'missing') throw invalidValue('project', await noneFits(which))
    onChange()
    return shown(changed)
  }

  async function add(project: StoredProject, by: AuditOrigin): Promise<boolean> {
    const isAdded = await store.add(project, { ...eventOf(by, 'project.create', project), after: shown(project) })
    if (isAdded) onChange()
    return isAdded
  }

  return {
    async declare({ disabled, log_contents, ...settings }, by) {
      const declared = { ...readSettings(settings, 0), disabled, log_contents, declared: true }
      const found = await store.findNamed(settings.name)
      const project_id = found?.project_id ?? `proj_${randomAlphanumerics(16)}`
      if (!found) {
        const { name } = settings
        const fresh = { project_id, ...NOTHING_SET, ...declared, name, created_at: now(), deleted_at: null }
        if (await add(fresh, by)) return { project_id, isAdopted: false }
      }
      // Another process may have created it meanwhile.
      const fields = (present: StoredProject) =>
        differing(present, { ...declared, labels: { ...settings.labels, ...importLabels(present.labels) } })
      const changed = await change(settings.name, { fields, action: 'project.update', by })
      return { project_id: changed.project_id, isAdopted: found !== undefined && !found.declared }
    },
    async undeclare(project_id, by) {
      await change(project_id, { fields: { declared: false }, action: 'project.update', by })
    },
    async create({ log_contents = null, ...order }, by = BY_GATEWAY) {
      const project: StoredProject = {
        project_id: `proj_${randomAlphanumerics(16)}`,
        ...NOTHING_SET,
        ...readSettings(order, now()),
        log_contents,
        name: readName(order.name),
        created_at: now(),
        deleted_at: null,
      }
      if (!(await add(project, by))) throw nameTaken()
      return shown(project)
    },
    list: async () => (await store.list()).map(shown),
    async find(project_id) {
      const found = await store.find(project_id)
      return found && found.deleted_at === null ? shown(found) : undefined
    },
    async page(options) {
      const { rows, next } = await store.page({ ...options, now: now() })
      return { rows: rows.map(shown), next }
    },
    choose: async (which) => shown(await choose(which)),
    update: (which, given, by) =>
      change(which, {
        fields: (present) => {
          assertNotDeclared('project', present)
          const { disabled, log_contents, ...settings } = typeof given === 'function' ? given(shown(present)) : given
          return {
            ...withImportLabels(readSettings(settings, now()), present),
            ...(disabled !== undefined && { disabled }),
            ...(log_contents !== undefined && { log_contents }),
          }
        },
        action: 'project.update',
        by,
      }),
    delete: (which, by, check = () => {}) =>
      change(which, {
        fields(present) {
          assertNotDeclared('project', present)
          check(shown(present))
          return { deleted_at: now() }
        },
        action: 'project.delete',
        by,
      }),
  }
}

function shown({ deleted_at: _, ...project }: StoredProject): Project {
  return project
}

const nameTaken = () => invalidValue('name', 'name: another project has this name.')
