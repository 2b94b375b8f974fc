/** A settings file of a client that cannot be changed; the message continues a sentence about the file. */
export class SettingsError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'SettingsError'
  }
}
