/** Reads the secret files of a configuration, and notices when one of them has changed. */
import { factsOf } from './file-state.ts'
import { readSecretFile } from './read-secret-file.ts'

/** The secret files of one configuration, each as it was when it was read last. */
export type SecretFiles = {
  /** Forgets what an earlier load has read. */
  begin(): void
  read(path: string): string
  /** Identifies the files as they are now; equal to `readMark` while none has changed. */
  mark(): string
  readMark(): string
}

export function createSecretFiles(): SecretFiles {
  const marks = new Map<string, string>()
  return {
    begin: () => marks.clear(),
    read(path) {
      // Before it is read: a file that changes meanwhile is read again.
      marks.set(path, factsOf(path).mark)
      return readSecretFile(path)
    },
    mark: () => [...marks.keys()].map((path) => factsOf(path).mark).join('\n'),
    readMark: () => [...marks.values()].join('\n'),
  }
}
