/** Says why a file cannot be read, in a message for the person who named it. */

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
}

/** As the rest of a sentence such as `--body: none.json cannot be read: `. Errors without a known code keep their message. */
export function whyUnreadable(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return REASONS[code] ?? message
}
