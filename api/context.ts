/** What the functions of api/ need of their caller: they read no environment and print nothing. */
export interface ApiContext {
  /** PETREL_HOME: the folder of this machine's stack. */
  readonly home: string;
  /** The folder that relative paths of recipes and overrides are read from. */
  readonly cwd: string;
  /** Variables for the hub and S3 clients (`HF_TOKEN`, `AWS_PROFILE` …), and what `env:NAME` in a recipe means. */
  readonly env: NodeJS.ProcessEnv;
  /** Takes sentences for people, such as a store that is left out. Nothing depends on whether they are shown. */
  readonly notice: (text: string) => void;
}
