/** In which of their projects a person acts, for who is in several: chosen for this window. */
const KEY = 'gatehouse.project'

export const chosenProject = (): string | undefined => sessionStorage.getItem(KEY) ?? undefined

export function chooseProject(project_id: string | undefined): void {
  if (project_id === undefined) sessionStorage.removeItem(KEY)
  else sessionStorage.setItem(KEY, project_id)
}
