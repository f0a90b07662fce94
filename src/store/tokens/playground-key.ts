/** Makes the value that stands for the hash of a playground token: no secret has it, since it is no hash. */

const KEY = /^playground:([^:]*):(.+)$/s

export const playgroundKey = ({ actor, project_id }: { actor: string; project_id: string | null }): string =>
  `playground:${project_id ?? ''}:${actor}`

/** The person whose token has this hash; undefined: it is not one of the playground. */
export const playgroundActor = (hash: string): string | undefined =>
  hash.startsWith('playground:') ? KEY.exec(hash)?.[2] : undefined
