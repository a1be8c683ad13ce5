/* The suite for Fortran programs. */
#include "conform.h"

void conform_f(MPI_Fint comm)
{
    conform(MPI_Comm_f2c(comm));
}
