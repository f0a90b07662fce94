/** Converts `system_instruction` to `systemInstruction`; a name without underscores is unchanged. */
export const camelCase = (name: string): string =>
  name.includes('_') ? name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) : name
