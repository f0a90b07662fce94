/** A name within the quotes of a form's part, as browsers write it (WHATWG HTML, section 4.10.21.8): nothing ends them early. */
export const formName = (name: string): string => name.replaceAll(/[\r\n"]/g, (sign) => encodeURIComponent(sign))
