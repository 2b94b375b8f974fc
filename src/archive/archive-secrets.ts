/** The secrets in the address of an archive, which logs and messages hide. */
import { passwordsIn } from '../config/secret-settings.js'

export function secretsOfArchive(url: string): string[] {
  return passwordsIn(url).filter((password) => password !== '')
}
