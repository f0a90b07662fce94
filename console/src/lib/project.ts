/** In which of their projects a person acts, for who is in several: chosen for this window. */
const KEY = 'gatehouse.project'

let own: readonly string[] = []

/** Those of the person, who is in several. */
export function setOwnProjects(project_ids: readonly string[]): void {
  own = project_ids
}

/** The project that a call acts in: the one that it names, where the person is in it, else the chosen one. */
export const projectOfCall = (named: readonly unknown[]): string | undefined =>
  named.find((one): one is string => own.some((id) => id === one)) ?? chosenProject()

export const chosenProject = (): string | undefined => sessionStorage.getItem(KEY) ?? undefined

export function chooseProject(project_id: string | undefined): void {
  if (project_id === undefined) sessionStorage.removeItem(KEY)
  else sessionStorage.setItem(KEY, project_id)
}
